"""Draws samples of training and held-out samples, without playing episodes."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym

from visenv.data.source import draw
from visenv.evaluation import places
from visenv.seeding import is_held_out, random_stream, seeds
from visenv.types import Sample

SEEDS: Final = 5_000
"""Number of seeds that a test draws for training, and for an evaluation."""


def training_seeds(count: int) -> list[int]:
    """Return the first seeds of a training run with the seed 0."""
    return seeds(random_stream(0, 1, 0), count)


def held_out_seeds(env: gym.Env[Any, Any], count: int) -> list[int]:
    """Return the seeds of an evaluation of an environment."""
    return [spec.seed for spec in places(env, count)]


def drawn(env: gym.Env[Any, Any], seed: int) -> Sample:
    """Return the sample of a seed, as `reset` draws it, without playing."""
    base: Any = env.unwrapped
    rng, _ = gym.utils.seeding.np_random(seed)
    return draw(base.source, rng, {}, is_held_out(seed))
