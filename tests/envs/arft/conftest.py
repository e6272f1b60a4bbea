"""Provides samples with and without distortions, and the oracle's turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.env import VisEnv
from visenv.envs.arft.coding.world import Problems, distorted
from visenv.types import Image, QuestionTruth, Sample

Env = gym.Env[Any, str]


def clean_sample(width: int, height: int) -> Sample:
    """Return an image without edges, which JPEG changes by at most two levels."""
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    channels = (60 + 120 * x, 60 + 120 * y, 180 - 90 * x * y)
    image = Image.from_pixels(np.stack(channels, axis=2).astype(np.uint8))
    box = (width // 4, height // 4, width // 2, height // 2)
    truth = QuestionTruth(options=("yes", "no"), target_box=box)
    return Sample("given", "Is it so?", (image,), ("yes",), "", truth)


@pytest.fixture(scope="session")
def clean() -> Callable[..., Sample]:
    """Return a function that makes a sample without distortions."""
    return lambda width=120, height=80: clean_sample(width, height)


@pytest.fixture(scope="session")
def broken() -> Callable[..., Sample]:
    """Return a function that makes the same sample with distortions."""

    def make(*problems: str, seed: int = 0, width: int = 120, height: int = 80) -> Sample:
        wrong: Problems = problems
        return distorted(clean_sample(width, height), wrong, np.random.default_rng(seed))

    return make


@pytest.fixture(scope="session")
def oracle() -> Callable[[Env], str]:
    """Return a function that returns the oracle's next turn as text."""

    def say(env: Env) -> str:
        base = env.unwrapped
        assert isinstance(base, VisEnv)
        return base.grammar.compose(base.oracle_turn())

    return say
