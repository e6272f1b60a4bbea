"""The event loop of all scorers of this process.

Scorers do not use the loop of `visenv.background`. A plain reward term or tool may run there and
wait for an encoder; on one loop it would wait for itself.
"""

from __future__ import annotations

from visenv.background import EventLoopThread

loop = EventLoopThread("visenv-scorers")
