"""Wave: holds scored episodes back until no other episode is being played or scored.

A verdict arrives at a time that differs from run to run. If the sampler's batches, or the start of
further episodes, depended on that time, two runs would differ. In deterministic mode, an episode
that waited for a verdict is therefore handed on only when all episodes of its wave have theirs.
"""

from __future__ import annotations

import asyncio

Order = tuple[int, int]
"""The group and the member of an episode."""


class Wave:
    """Counts the episodes that are being played, and releases held ones in a fixed order.

    An episode enters once, whatever its number of attempts, and leaves when it is handed on.
    """

    def __init__(self) -> None:
        self._active = 0
        self._held: list[tuple[Order, asyncio.Future[None]]] = []

    def enter(self) -> None:
        """Count an episode that is about to be played."""
        self._active += 1

    def leave(self) -> None:
        """Count an episode out."""
        self._active -= 1
        if not self._active:
            # Not at once: the caller, which may be held itself, would go on before all others.
            asyncio.get_running_loop().call_soon(self._release)

    async def hold(self, order: Order) -> None:
        """Count an episode out until all others are out, too; then it is counted again."""
        released = asyncio.get_running_loop().create_future()
        self._held.append((order, released))
        self.leave()
        try:
            await released
        except asyncio.CancelledError:
            if released.cancelled():  # otherwise it was cancelled when it was already released
                self._active += 1
            raise

    def _release(self) -> None:
        """Release all held episodes at once, so that none of them waits for another's retry."""
        if self._active:
            return
        held, self._held = self._held, []
        for _, released in sorted(held, key=lambda each: each[0]):
            if not released.cancelled():
                self._active += 1
                released.set_result(None)
