"""Ctrl-C and SIGTERM: both stop a run between two steps."""

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
    """Hold Ctrl-C back until the block has ended, then raise its `KeyboardInterrupt`.

    Weights and optimizer change together inside such a block, so that an interrupted run is always
    between two steps.
    """
    with collected_interrupts() as received:
        yield
    if received:
        raise KeyboardInterrupt


@contextmanager
def collected_interrupts() -> Iterator[list[int]]:
    """Collect the interrupts of the block instead of raising them.

    Several processes have to stop after the same step, so that none of them may be interrupted
    between the moment in which they agree to go on and the next one. Signals only reach the main
    thread; elsewhere nothing is collected.

    Yields:
        The numbers of the signals that have arrived so far.
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
    """Stop this process when the process that started it has died.

    A thread watches the parent; one is enough for all runs of this process. It sends SIGTERM, so
    that a checkpoint is written, and ends the process if that takes too long.

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
    """Do what Ctrl-C does at this moment, also where a shell has it ignored."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
