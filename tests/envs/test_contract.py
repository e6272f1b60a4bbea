"""Tests the contract of every registered environment, so that new ones are included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from tests.environments import IDS, VARIANTS
from visenv.testing.contract import CHECKS
from visenv.testing.record import MakeEnv

SANDBOXED = "visenv/ArftCoding-v0"
OF_SANDBOXED = ("check_conforms", "check_oracle_gets_the_top_reward", "check_survives_any_text")
"""The checks of an environment whose turns run in a sandbox; most are for `soak`."""

OF_VARIANTS = ("check_conforms", "check_oracle_gets_the_top_reward")

SMALL: dict[str, Any] = {"side": 96}
OPTIONS = dict.fromkeys(("visenv/House-v0", "visenv/EBAlfred-v0", "visenv/EBHabitat-v0"), SMALL)
"""Options of ids whose large frames take most of the time; no check depends on their size."""

HOSTILE = pytest.mark.attack(
    "policies: no text of a policy raises an exception or stops an episode"
)


def marks(env_id: str, check: Callable[[MakeEnv], None]) -> list[pytest.MarkDecorator]:
    """Return the marks of a case.

    Checks with hostile texts are attacks. Slow ones are for soak, and most of a variant, whose
    grammar and tools another id has.
    """
    is_attack = check.__name__.startswith("check_survives")
    is_slow = (env_id in VARIANTS and check.__name__ not in OF_VARIANTS) or (
        env_id == SANDBOXED and check.__name__ not in OF_SANDBOXED
    )
    return [HOSTILE] * is_attack + [pytest.mark.soak] * is_slow


CASES = [
    pytest.param(env_id, check, id=f"{check.__name__}-{env_id}", marks=marks(env_id, check))
    for check in CHECKS
    for env_id in IDS
]


@pytest.mark.parametrize(("env_id", "check"), CASES)
def test_environment_satisfies_the_contract(env_id: str, check: Callable[[MakeEnv], None]) -> None:
    check(partial(gym.make, env_id, **OPTIONS.get(env_id, {})))
