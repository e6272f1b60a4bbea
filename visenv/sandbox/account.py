"""Measures how long a step of an environment waited for sandbox workers.

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
    """Collect the waits of all programs that are run in the block or in tasks started in it.

    Yields:
        The seconds of each wait, also of waits that ended at the deadline. The waits of an inner
        block are not added to those of an outer block.
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
        waits.append(seconds)  # atomic: tasks of a block may run in several threads
