"""Tests the contract of every registered environment, so that new ones are included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import gymnasium as gym
import pytest

from tests.environments import IDS
from visenv.testing.contract import CHECKS
from visenv.testing.record import MakeEnv


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_environment_satisfies_the_contract(env_id: str, check: Callable[[MakeEnv], None]) -> None:
    check(partial(gym.make, env_id))
