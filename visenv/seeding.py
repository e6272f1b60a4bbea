"""Turns a stream of random numbers into the seeds that `reset` takes."""

from __future__ import annotations

import numpy as np


def seeds(stream: np.random.SeedSequence, count: int) -> list[int]:
    """Return the first `count` seeds of a stream, 0 to ``2**63 - 1``.

    Unlike ``seed + i``, seeds of one stream are unrelated to one another and to those of any other,
    so that two runs never share a task because their seeds are neighbors. They fit a signed 64-bit
    integer, as JSON readers and simulators expect one.
    """
    words = stream.generate_state(count, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]
