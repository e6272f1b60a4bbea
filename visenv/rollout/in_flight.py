"""Limits and orders the episodes in flight: a semaphore with priorities, and a barrier.

**Barrier.** Scored episodes are held back until no other episode is being played or scored. The
time at which the result of a scorer arrives differs between runs. If the batches of the sampler or
the start of further episodes depended on that time, two runs would differ. In deterministic mode,
an episode that waited for a scorer is therefore returned only when all other episodes in flight
have ended or are held back too.

If environments run in threads or processes, a result of a step also arrives at any time. Then a
second barrier holds each episode after each step, until no other episode waits for its environment
or for a reply.
"""

from __future__ import annotations

import asyncio
import itertools
from heapq import heappop, heappush

Order = tuple[int, int]
"""The group and the member of an episode."""


class InFlightBarrier:
    """Counts the episodes that are being played, and releases held episodes in a fixed order.

    An episode enters the count once, however many attempts it needs. It leaves the count while it
    is held, and finally when it is returned.
    """

    def __init__(self) -> None:
        self._active = 0
        self._held: list[tuple[Order, asyncio.Future[None]]] = []

    def enter(self) -> None:
        """Add an episode that is about to be played to the count."""
        self._active += 1

    def leave(self) -> None:
        """Remove an episode from the count."""
        self._active -= 1
        if not self._active:
            # Release in the next iteration of the event loop. `hold` calls this method: with an
            # immediate release, its own episode would continue before the other held episodes.
            asyncio.get_running_loop().call_soon(self._release)

    async def hold(self, order: Order) -> None:
        """Remove an episode from the count, wait until the count is 0, and add the episode again.

        Args:
            order: The group and the member; episodes are released in this order.
        """
        released = asyncio.get_running_loop().create_future()
        self._held.append((order, released))
        self.leave()
        try:
            await released
        except asyncio.CancelledError:
            if released.cancelled():  # otherwise `_release` has counted the episode already
                self._active += 1
            raise

    def _release(self) -> None:
        """Release all held episodes together, so that none of them waits for a retry of another."""
        if self._active:
            return
        held, self._held = self._held, []
        for _, released in sorted(held, key=lambda each: each[0]):
            if not released.cancelled():
                self._active += 1
                released.set_result(None)


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
