"""Tests the contract of every registered environment, so that new ones are included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import gymnasium as gym
import pytest

from tests.environments import IDS
from visenv.testing.contract import CHECKS
from visenv.testing.record import MakeEnv
from visenv.testing.survival import check_survives_huge_calls

SLOW = {("visenv/ArftCoding-v0", check_survives_huge_calls)}
"""Each of its programs of a megabyte runs in a sandbox."""

CASES = [
    pytest.param(
        env_id,
        check,
        id=f"{check.__name__}-{env_id}",
        marks=[pytest.mark.soak] if (env_id, check) in SLOW else [],
    )
    for check in CHECKS
    for env_id in IDS
]


@pytest.mark.parametrize(("env_id", "check"), CASES)
def test_environment_satisfies_the_contract(env_id: str, check: Callable[[MakeEnv], None]) -> None:
    check(partial(gym.make, env_id))
