"""Handles Ctrl-C and signals of schedulers and terminals, which stop a run between two steps."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU)
"""Signals that announce the end of a process, besides Ctrl-C (SIGINT).

SIGTERM comes from schedulers and ``kill``, SIGHUP from a terminal that is closed, SIGUSR1 from
Slurm (``--signal=USR1@60``) before the time limit of a job, and SIGXCPU from a limit of CPU time.
"""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer interrupts until the block has ended, then raise a `KeyboardInterrupt`.

    Weights and optimizer change together inside such a block, so an interrupted run is always
    between two steps.
    """
    with collected_interrupts() as received:
        yield
    if received:
        raise KeyboardInterrupt


@contextmanager
def collected_interrupts(*, ctrl_c: bool = True) -> Iterator[list[int]]:
    """Collect the interrupts of the block instead of raising them.

    Several processes must stop after the same step. Therefore no process may be interrupted after
    they have agreed to continue with the next step. Signals are received by the main thread only;
    in other threads nothing is collected. A signal that is ignored, or ends the process, is not
    collected.

    Args:
        ctrl_c: Whether Ctrl-C is collected too; otherwise it interrupts the block.

    Yields:
        The numbers of the signals that have arrived.
    """
    received: list[int] = []
    with ExitStack() as held:
        if _in_main_thread():
            for number in (*([signal.SIGINT] if ctrl_c else []), *STOP_SIGNALS):
                if callable(signal.getsignal(number)):
                    held.enter_context(_handled(number, lambda each, _: received.append(each)))
        yield received


@contextmanager
def stop_signals_interrupt() -> Iterator[None]:
    """Treat `STOP_SIGNALS` like Ctrl-C inside the block, if the main thread runs it.

    Signals that this process ignores stay ignored, as SIGHUP after ``nohup``. Handlers of the
    program for other signals than SIGTERM stay in place.
    """
    with ExitStack() as held:
        if _in_main_thread():
            for number in STOP_SIGNALS:
                handler = signal.getsignal(number)
                if handler == signal.SIG_DFL or (number == signal.SIGTERM and callable(handler)):
                    held.enter_context(_handled(number, _interrupt))
        yield


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


@contextmanager
def _handled(
    number: signal.Signals, handler: Callable[[int, FrameType | None], Any]
) -> Iterator[None]:
    """Handle a signal inside the block, and restore the previous handler afterwards."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        if before is not None:  # a handler that was not installed by Python cannot be restored
            signal.signal(number, before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
