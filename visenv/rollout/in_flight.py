"""Holds scored episodes back until no other episode is being played or scored.

The time at which the result of a scorer arrives differs between runs. If the batches of the sampler
or the start of further episodes depended on that time, two runs would differ. In deterministic
mode, an episode that waited for a scorer is therefore returned only when all other episodes in
flight have ended or are held back too.

If environments run in threads or processes, a result of a step also arrives at any time. Then a
second barrier holds each episode after each step, until no other episode waits for its environment
or for a reply.
"""

from __future__ import annotations

import asyncio

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
