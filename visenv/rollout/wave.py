"""Wave: holds scored episodes back until no other episode is being played or scored.

A verdict arrives at a time that differs from run to run. If the sampler's batches, or the start of
further episodes, depended on that time, two runs would differ. In deterministic mode, an episode
that waited for a verdict is therefore handed on only when all episodes of its wave have theirs.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush

Order = tuple[int, int]
"""The group and the member of an episode."""


class Wave:
    """Counts the episodes that are being played, and releases held ones in a fixed order."""

    def __init__(self) -> None:
        self._active = 0
        self._count = 0
        self._held: list[tuple[Order, int, asyncio.Future[None]]] = []

    def enter(self) -> None:
        """Count an episode that is about to be played."""
        self._active += 1

    def leave(self) -> None:
        """Count an episode out that waits for no other."""
        self._active -= 1
        if not self._active:
            # Not at once: the caller, which may be held itself, would go on before all others.
            asyncio.get_running_loop().call_soon(self._release)

    async def hold(self, order: Order) -> None:
        """Count an episode out, and wait until all others are out too."""
        released = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._held, (order, self._count, released))
        self.leave()
        await released

    def _release(self) -> None:
        while not self._active and self._held:
            *_, released = heappop(self._held)
            if not released.done():  # otherwise its episode was cancelled
                released.set_result(None)
