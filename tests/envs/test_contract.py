"""Tests the contract of every registered environment, so that new ones are included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from tests.environments import IDS, VARIANTS
from visenv.testing.contract import CHECKS, check_oracle_gets_the_top_reward
from visenv.testing.record import MakeEnv

SANDBOXED = "visenv/ArftCoding-v0"
OF_SANDBOXED = ("check_conforms", "check_oracle_gets_the_top_reward", "check_survives_any_text")
"""The checks of an environment whose turns run in a sandbox; most are for `soak`."""

OF_VARIANTS = ("check_conforms", "check_oracle_gets_the_top_reward")

HOUSES = ("visenv/House-v0", "visenv/EBAlfred-v0", "visenv/EBHabitat-v0")
LARGE = ("visenv/ZoomVQA-v0", "visenv/MagsZoom-v0", "visenv/ArmZoom-v0", "visenv/ArmDoc-v0",
         "visenv/ArmVQA-v0", *HOUSES)  # fmt: skip
"""Ids whose large images or houses take most of the time. `make test` checks them with their preset
``tiny``, except that the oracle plays the default preset; all other cases are for `make soak`."""


def options(env_id: str, check: Callable[[MakeEnv], None]) -> dict[str, Any]:
    """Return the options with which `make test` checks an id."""
    if env_id in LARGE and check is not check_oracle_gets_the_top_reward:
        return {"preset": "tiny"}
    return {"side": 96} if env_id in HOUSES else {}


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


@pytest.mark.soak
@pytest.mark.parametrize("env_id", LARGE)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_large_environment_satisfies_the_contract(
    env_id: str, check: Callable[[MakeEnv], None]
) -> None:
    check(partial(gym.make, env_id))
