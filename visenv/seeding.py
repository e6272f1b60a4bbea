"""Derives streams of random numbers, and the seeds that `reset` takes, from the seed of a run.

A seed tells whether its sample is held out: `HELD_OUT` is added to the seeds of an evaluation if
the source keeps documents, worlds or states apart for it (`visenv.data.source.HeldOutSource`). All
players, saved episodes and rescoring then agree about the sample.
"""

from __future__ import annotations

import numpy as np

HELD_OUT = 2**63
"""The first seed of held-out samples. Training uses the seeds below."""


def is_held_out(seed: int | None) -> bool:
    """Return whether the sample of a seed is held out from training."""
    return seed is not None and seed >= HELD_OUT


def random_stream(seed: int, *keys: int) -> np.random.SeedSequence:
    """Return an independent stream of random numbers for each sequence of keys."""
    return np.random.SeedSequence(seed, spawn_key=keys)


def seeds(stream: np.random.SeedSequence, count: int) -> list[int]:
    """Return the first `count` seeds of a stream, 0 to ``2**63 - 1``.

    Unlike ``seed + i``, the seeds of one stream are independent of each other and of those of other
    streams. Two runs with adjacent seeds therefore share no tasks. The seeds fit into a signed
    64-bit integer, because JSON readers and simulators expect that.
    """
    words = stream.generate_state(count, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]
