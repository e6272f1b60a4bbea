"""Tests the contract of every registered environment, so that new ones are included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from tests.environments import IDS
from visenv.testing.contract import CHECKS
from visenv.testing.record import MakeEnv

HOSTILE = pytest.mark.attack(
    "policies: no text of a policy raises an exception or stops an episode"
)


def marked(check: Callable[[MakeEnv], None]) -> Any:
    """Return a check of the contract as a parameter; those with hostile texts are attacks."""
    is_attack = check.__name__.startswith("check_survives")
    return pytest.param(check, marks=[HOSTILE] if is_attack else [], id=check.__name__)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("check", map(marked, CHECKS))
def test_environment_satisfies_the_contract(env_id: str, check: Callable[[MakeEnv], None]) -> None:
    check(partial(gym.make, env_id))
