"""Ctrl-C that waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted(anybody: Callable[[bool], bool] = bool) -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, then raise its `KeyboardInterrupt`.

    Weights and optimiser change together inside such a block, so that an interrupted run is always
    between two steps. Signals only reach the main thread; elsewhere nothing is held back.

    Args:
        anybody: Told whether this process was interrupted, says whether any was, so that several
            stop together.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if anybody(bool(received)):
        raise KeyboardInterrupt
