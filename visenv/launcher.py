"""Reads the environment variables with which a launcher describes the processes that it starts.

``accelerate launch`` and ``torchrun`` set them, and so does `visenv train` for several processes.
"""

from __future__ import annotations

import os


def rank() -> int:
    """Return the rank of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return the number of processes that were launched together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int | None:
    """Return the rank of this process among those of its machine; None without a launcher."""
    local = os.environ.get("LOCAL_RANK")
    return None if local is None else int(local)


def is_first() -> bool:
    """Return whether this process is the first of its run, which writes the files."""
    return rank() == 0


def is_launched() -> bool:
    """Return whether a launcher has started this process."""
    return local_rank() is not None
