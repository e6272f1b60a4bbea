"""Holds the event loop of all scorers of this process.

Scorers do not use the loop of `visenv.background`, because a plain reward term or tool may run
there and wait for an encoder; on the same loop this would be a deadlock.
"""

from __future__ import annotations

from visenv.background import EventLoopThread

loop = EventLoopThread("visenv-scorers")
