"""Accounts for the time that a step of an environment waited for workers of sandboxes.

::

    with sandbox_waits() as waits:
        env.step(action)
    sum(waits)  # seconds
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[list[float] | None] = ContextVar("sandbox_waits", default=None)


@contextmanager
def sandbox_waits() -> Iterator[list[float]]:
    """Collect the waits of the programs that are run in the block, and in tasks started in it.

    Yields:
        The seconds of each wait, those for a worker that did not come included. An inner block
        takes its waits from an outer one.
    """
    waits = list[float]()
    token = _current.set(waits)
    try:
        yield waits
    finally:
        _current.reset(token)


def add_wait(seconds: float) -> None:
    """Add a wait to the innermost block around the caller, if there is one."""
    waits = _current.get()
    if waits is not None:
        waits.append(seconds)  # one operation: tasks of a block may be in several threads
