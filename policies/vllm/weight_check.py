"""Checks that a vLLM server still holds the weights that were sent to it.

Another user may restart a server, or another program may send it weights. The weights therefore
have an identity, and sampled tokens are only accepted if the server had that identity after the
last sign that it may have changed. Signs are a new connection, a connection error, a turn that was
interrupted by others, a time without any turn, and each transfer of weights itself. After an
interruption by others, every turn that ends is checked until no turn is active, because the weights
may change after the first checks, and the server may hold turns until then. A turn that is answered
before the reply to the interrupted turn arrives is not detected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class WeightCheck:
    """Asks a server for its weights when they may have changed.

    Args:
        holds: Returns whether the server holds the weights of an identity.

    Attributes:
        identity: The identity of the weights that were sent last.
        lost: Whether the server does not hold them.
    """

    def __init__(self, holds: Callable[[str], Awaitable[bool]]) -> None:
        self.identity = ""
        self.lost = False
        self._holds = holds
        self._doubts, self._checked = 1, 0
        self._interrupted = False
        self._asking = asyncio.Lock()

    def doubt(self) -> None:
        """Record that the weights of the server may have changed."""
        self._doubts += 1

    def begin_turns(self) -> None:
        """Record that a turn begins while no other is active.

        A transfer by others would have interrupted an active turn, but nothing shows a transfer in
        the time before.
        """
        self.doubt()
        self._interrupted = False

    def record_interruption(self) -> None:
        """Record that others interrupted a turn: all turns that overlap with it are checked."""
        self._interrupted = True

    async def passes(self) -> bool:
        """Return whether the server holds the weights; ask it if they are in doubt."""
        self._doubts += self._interrupted
        async with self._asking:
            doubts = self._doubts
            if self._checked < doubts and not self.lost:
                self.lost = not await self._holds(self.identity)
                self._checked = doubts
        return not self.lost
