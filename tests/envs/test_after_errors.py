"""Tests that an environment plays on after a `reset` that raised."""

from __future__ import annotations

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.errors import ConfigurationError
from visenv.registration import ENVIRONMENTS


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_checker_of_gymnasium_is_off_unless_asked_for(env_id: str) -> None:
    """It breaks an environment whose first `reset` raises (gymnasium 1.4)."""
    assert gym.spec(env_id).disable_env_checker


@pytest.mark.parametrize(
    "options", [{"index": 3}, {"nope": 1}, {"sample": 3}], ids=["index", "unknown", "sample"]
)
def test_environment_plays_after_a_reset_that_raised(options: dict[str, object]) -> None:
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny")
    with pytest.raises(ConfigurationError):
        env.reset(seed=0, options=options)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert env.step("no answer")[1] == 0.0
    env.close()
