"""Resets objects after a fork: the child does not own their locks, sockets and processes.

On Linux, multiprocessing forks before Python 3.14, also if the parent has an open sandbox.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Marks an object whose state belongs to one process."""

    def after_fork(self) -> None:
        """Discard the state without changing anything that the parent still uses."""
        ...


_LIVING: WeakSet[Forkable] = WeakSet()


def watch(each: Forkable) -> None:
    """Call `after_fork` of the object in every forked child."""
    _LIVING.add(each)


def _after_fork() -> None:
    for each in list(_LIVING):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
