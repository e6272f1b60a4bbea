"""Defines a semaphore that limits the number of concurrent tasks and serves them by priority."""

from __future__ import annotations

import asyncio
import itertools
from heapq import heappop, heappush


class PrioritySemaphore:
    """Limits concurrent tasks like `asyncio.Semaphore`, and serves waiting tasks by rank.

    The semaphore can be used in several event loops, one after another.

    Args:
        places: Maximum number of tasks that hold the semaphore at the same time.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    async def acquire(self, rank: int = 0) -> None:
        """Wait for a place; the lowest rank is served first, then the earliest request."""
        if self._free:
            self._free -= 1
            return
        granted = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, next(self._order), granted))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # the place was granted before the task was cancelled
                self.release()
            raise

    def release(self) -> None:
        """Return the place."""
        while self._waiting:
            *_, granted = heappop(self._waiting)
            if not granted.done():  # otherwise its task was cancelled
                granted.set_result(None)
                return
        self._free += 1
