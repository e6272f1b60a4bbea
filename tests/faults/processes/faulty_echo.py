"""Provides the environment of the faults: `Echo` that fails once, or in each of some steps.

The module does not import PyTorch, so that child processes start quickly.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.algos.echo import Echo

_PERIOD = 25
"""A fault happens in one of this many steps."""


def once(place: Path) -> bool:
    """Return whether this is the first call for a file, in all threads and processes."""
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _raise(error: BaseException) -> None:
    raise error


def _signal_all_workers(trainer: int, number: int) -> None:
    """Signal all other processes whose parent is the trainer, and this process last."""
    pids = {
        int(pid)
        for path in Path(f"/proc/{trainer}/task").glob("*/children")
        for pid in path.read_text().split()
    }
    for pid in sorted(pids, key=lambda each: each == os.getpid()):
        os.kill(pid, number)


FAULTS: dict[str, Callable[[int], Any]] = {
    "raises": lambda _: _raise(RuntimeError("a fault of the environment")),
    "has a bug": lambda _: _raise(AttributeError("a bug of the environment")),
    "raises MemoryError": lambda _: _raise(MemoryError()),
    "raises KeyboardInterrupt": lambda _: _raise(KeyboardInterrupt()),
    "calls sys.exit": lambda _: sys.exit(3),
    "returns None": lambda _: (None,),
    "returns a reward of NaN": lambda _: (((), float("nan"), False, False, {}),),
    "prints a megabyte": lambda _: print("x" * (1 << 20)),
    "calls os._exit": lambda _: os._exit(3),
    "calls abort": lambda _: os.abort(),
    "has a segmentation fault": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "never ends": lambda _: threading.Event().wait(),
    "never ends in C": lambda _: ctypes.CDLL(None).pause(),
    "stops its process": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "kills all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGKILL),
    "interrupts all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGINT),
    "hangs up all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGHUP),
}
"""Faults of a step, by name; the argument is the process of the trainer.

A tuple replaces the result of the step.
"""


def send(trainer: int, number: int, times: int = 1) -> None:
    """Send a signal to the trainer."""
    for _ in range(times):
        os.kill(trainer, number)


class FaultyEcho(Echo):
    """Fails in one of `_PERIOD` steps, each time only for the first episode of a seed.

    Args:
        folder: The folder of the marks of faults that have happened.
        trainer: The process of the trainer.
        fault: A name of `FAULTS`, or ``""``.
        place: Where the fault happens: in ``"step"``, ``"reset"`` or ``"making"``.
        signals: A signal that the environment sends to the trainer in a reset, and how often.
    """

    def __init__(
        self,
        folder: Path,
        trainer: int,
        fault: str = "",
        place: str = "step",
        signals: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._trainer = trainer
        self._fault = fault
        self._place = place
        self._signals = signals
        self._resets = 0
        if place == "making" and fault and once(folder / "making"):
            FAULTS[fault](trainer)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        result = super().reset(seed=seed, options=options)
        self._resets += 1
        if self._signals is not None and self._resets == 3 and once(self._folder / "signal"):
            send(self._trainer, *self._signals)
        if self._place == "reset":
            self._fail(str(seed), result)
        return result

    @override
    def step(self, action: str) -> Any:
        turn = f"{self._seed}-{self._turn}"
        result = super().step(action)
        return self._fail(turn, result) if self._place == "step" else result

    def _fail(self, turn: str, result: Any) -> Any:
        is_due = sum(turn.encode()) % _PERIOD == 0
        if not (self._fault and is_due and once(self._folder / f"fault-{turn}")):
            return result
        given = FAULTS[self._fault](self._trainer)
        if not isinstance(given, tuple):
            return result
        (replaced,) = given
        if replaced is None:
            return None
        return (*result[:1], *replaced[1:2], *result[2:])
