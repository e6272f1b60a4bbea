"""Objects that must start again in a forked process: their locks, sockets and children are not its.

multiprocessing forks on Linux before Python 3.14, with whatever sandbox the parent has open.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Marks an object with a state of this process."""

    def after_fork(self) -> None:
        """Forget it, without touching what the parent goes on using."""
        ...


_LIVING: WeakSet[Forkable] = WeakSet()


def watch(each: Forkable) -> None:
    """Call its `after_fork` in every forked child."""
    _LIVING.add(each)


def _after_fork() -> None:
    for each in list(_LIVING):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
