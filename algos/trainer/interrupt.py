"""Handles Ctrl-C and SIGTERM, which stop a run between two steps."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C until the block has ended, then raise its `KeyboardInterrupt`.

    Weights and optimizer change together inside such a block, so an interrupted run is always
    between two steps.
    """
    with collected_interrupts() as received:
        yield
    if received:
        raise KeyboardInterrupt


@contextmanager
def collected_interrupts() -> Iterator[list[int]]:
    """Collect the interrupts of the block instead of raising them.

    Several processes must stop after the same step. Therefore no process may be interrupted after
    they have agreed to continue with the next step. Signals are received by the main thread only;
    in other threads nothing is collected.

    Yields:
        The numbers of the signals that have arrived.
    """
    received: list[int] = []
    if not _in_main_thread():
        yield received
        return
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C inside the block, if the main thread runs it."""
    if not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@cache
def stop_with_launcher(grace: float) -> None:
    """Stop this process when its parent process has died.

    One thread for all runs of this process monitors the parent. It sends SIGTERM, so that a
    checkpoint is written, and ends the process if this takes too long.

    Args:
        grace: Seconds from the signal to the end of the process.
    """
    launcher = os.getppid()

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace)
        os._exit(1)

    threading.Thread(target=watch, name="visenv-launcher", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Run the current handler of Ctrl-C, or raise `KeyboardInterrupt` if it is disabled."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
