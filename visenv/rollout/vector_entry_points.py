"""Provides entry points for ``gym.make_vec``: a function for each id that makes its pool.

Gymnasium resolves the entry point ``visenv.rollout.vector_entry_points:visenv/ZoomVQA-v0`` as an
attribute of this module.
"""

from __future__ import annotations

from functools import partial

import gymnasium as gym

from visenv.rollout.vector_env import EpisodePool


def __getattr__(name: str) -> partial[EpisodePool]:
    if name not in gym.registry:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(EpisodePool, name)
