"""Converts a stream of random numbers to the seeds that `reset` takes."""

from __future__ import annotations

import numpy as np


def seeds(stream: np.random.SeedSequence, count: int) -> list[int]:
    """Return the first `count` seeds of a stream, 0 to ``2**63 - 1``.

    Unlike ``seed + i``, the seeds of one stream are independent of each other and of those of other
    streams. Two runs with adjacent seeds therefore share no tasks. The seeds fit into a signed
    64-bit integer, because JSON readers and simulators expect that.
    """
    words = stream.generate_state(count, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]
