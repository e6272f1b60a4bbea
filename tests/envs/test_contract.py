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

COUNTED = ("check_empty_turns_earn_little", "check_random_turns_rarely_reach_the_top")
"""Checks that count rewards of many episodes."""

HOUSES = ("visenv/House-v0", "visenv/EBAlfred-v0", "visenv/EBHabitat-v0")
"""Ids whose large frames and houses of many rooms take most of the time; only the check of the
oracle plays the published tasks."""

LARGE = ("visenv/ZoomVQA-v0", "visenv/MagsZoom-v0", "visenv/ArmZoom-v0", "visenv/ArmDoc-v0",
         "visenv/ArmVQA-v0")  # fmt: skip
"""Ids whose images of megapixels take most of the time of `COUNTED` and of rescoring."""


def options(env_id: str, check: Callable[[MakeEnv], None]) -> dict[str, Any]:
    """Return options for small frames and images, where a check does not depend on their size."""
    if env_id in LARGE and check.__name__ in (*COUNTED, "check_rescores"):
        return {"preset": "tiny"}
    if env_id not in HOUSES:
        return {}
    of_oracle = check.__name__ == "check_oracle_gets_the_top_reward"
    return {"side": 96} if of_oracle else {"side": 96, "preset": "tiny"}


HOSTILE = pytest.mark.attack(
    "policies: no text of a policy raises an exception or stops an episode"
)


def marks(env_id: str, check: Callable[[MakeEnv], None]) -> list[pytest.MarkDecorator]:
    """Return the marks of a case.

    Checks with hostile texts are attacks. Slow ones are for soak, and most of a variant, whose
    grammar and tools another id has.
    """
    name = check.__name__
    is_attack = name.startswith("check_survives")
    is_slow = (env_id in VARIANTS and name not in OF_VARIANTS) or (
        env_id == SANDBOXED and name not in OF_SANDBOXED
    )
    return [HOSTILE] * is_attack + [pytest.mark.soak] * is_slow


CASES = [
    pytest.param(env_id, check, id=f"{check.__name__}-{env_id}", marks=marks(env_id, check))
    for check in CHECKS
    for env_id in IDS
]


@pytest.mark.parametrize(("env_id", "check"), CASES)
def test_environment_satisfies_the_contract(env_id: str, check: Callable[[MakeEnv], None]) -> None:
    check(partial(gym.make, env_id, **options(env_id, check)))
