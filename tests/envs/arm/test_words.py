"""Tests that turns of the tiny presets of ARM are short in the tiny tokenizer."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.registration import load

pytestmark = pytest.mark.component("transformers")

LIMITS = {"ArmDoc": 64, "ArmDocVQA": 64, "ArmVQA": 80}
"""Largest number of tokens of a turn: 64 in recipes/arm_thinker_tiny.toml, mostly for boxes."""


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from visenv.policies.transformers import tiny

    return tiny.build_tokenizer(tiny.TinyConfig().vocab_size, load("vocabulary", "arm"))


@pytest.mark.parametrize("name", LIMITS)
def test_oracles_turns_are_short(tokenizer: Any, name: str) -> None:
    env = gym.make(f"visenv/{name}-v0", preset="tiny")
    base: Any = env.unwrapped
    for seed in range(10):
        env.reset(seed=seed)
        over = False
        while not over:
            turn = base.grammar.compose(base.oracle_turn())
            assert len(tokenizer.encode(turn, add_special_tokens=False)) <= LIMITS[name], turn
            *_, terminated, truncated, _ = env.step(turn)
            over = terminated or truncated
