"""What ``gym.make_vec`` finds: for every registered id, a function that makes its pool.

Gymnasium resolves the ``vector_entry_point`` ``"visenv.pool.registered:visenv/ZoomVQA-v0"`` as an
attribute of this module.
"""

from __future__ import annotations

from functools import partial

import gymnasium as gym

from visenv.pool.pool import EpisodePool


def __getattr__(name: str) -> partial[EpisodePool]:
    if name not in gym.registry:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(EpisodePool, name)
