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

_PERIODS = {"step": 25, "reset": 3}
"""A fault happens in one of this many steps or resets."""


def once(place: Path) -> bool:
    """Return whether this is the first call for a file, in all threads and processes."""
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _raise(error: BaseException) -> None:
    raise error


def children(pid: int) -> list[int]:
    """Return the child processes of a process, of all its threads."""
    paths = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in paths for child in path.read_text().split()]


def _signal_all_workers(trainer: int, number: int) -> None:
    """Signal all other processes whose parent is the trainer, and this process last."""
    for pid in sorted(children(trainer), key=lambda each: each == os.getpid()):
        os.kill(pid, number)


FAULTS: dict[str, Callable[[int], Any]] = {
    "raises": lambda _: _raise(RuntimeError("a fault of the environment")),
    "has a bug": lambda _: _raise(AttributeError("a bug of the environment")),
    "raises MemoryError": lambda _: _raise(MemoryError()),
    "raises KeyboardInterrupt": lambda _: _raise(KeyboardInterrupt()),
    "calls sys.exit": lambda _: sys.exit(3),
    "returns None": lambda _: (None,),
    "returns a reward of NaN": lambda _: (lambda seen, _, *rest: (seen, float("nan"), *rest),),
    "returns a text as reward": lambda _: (lambda seen, _, *rest: (seen, "much", *rest),),
    "returns an empty info": lambda _: (lambda *four_and_info: (*four_and_info[:4], {}),),
    "prints a megabyte": lambda _: print("x" * (1 << 20)),
    "calls os._exit": lambda _: os._exit(3),
    "calls abort": lambda _: os.abort(),
    "has a segmentation fault": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "never ends": lambda _: threading.Event().wait(),
    "never ends in C": lambda _: ctypes.CDLL(None).pause(),
    "closes all its files": lambda _: os.closerange(3, 1024),
    "stops its process": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "kills all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGKILL),
    "interrupts all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGINT),
    "hangs up all workers": lambda trainer: _signal_all_workers(trainer, signal.SIGHUP),
}
"""Faults of a step, by name; the argument is the process of the trainer.

A tuple contains the result of the step instead, or a function of it.
"""


def send(trainer: int, number: int, times: int = 1) -> None:
    """Send a signal to the trainer."""
    for _ in range(times):
        os.kill(trainer, number)


class FaultyEcho(Echo):
    """Fails in one of 25 steps or 3 resets, each time only for the first episode of a seed.

    Args:
        folder: The folder of the marks of faults that have happened.
        trainer: The process of the trainer.
        fault: A name of `FAULTS`, or ``""``.
        place: Where the fault happens: in ``"step"``, ``"reset"``, or in ``"making"`` the first
            environment of another process than the trainer.
        always: Whether the fault happens in each step instead.
        signals: A signal that the environment sends to the trainer in a reset, and how often.
    """

    def __init__(
        self,
        folder: Path,
        trainer: int,
        fault: str = "",
        place: str = "step",
        always: bool = False,
        signals: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._trainer = trainer
        self._fault = fault
        self._place = place
        self._always = always
        self._signals = signals
        self._resets = 0
        is_due = place == "making" and bool(fault) and os.getpid() != trainer
        if is_due and once(folder / "making"):
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
        if not self._fault:
            return result
        is_due = self._always or sum(turn.encode()) % _PERIODS[self._place] == 0
        if not (is_due and (once(self._folder / f"fault-{turn}") or self._always)):
            return result
        given = FAULTS[self._fault](self._trainer)
        if not isinstance(given, tuple):
            return result
        (replaced,) = given
        return replaced(*result) if callable(replaced) else replaced


class Replaced(Echo):
    """Fails in its third episode, so that it is replaced."""

    def __init__(self) -> None:
        super().__init__(self._count)
        self._resets = 0

    def _count(self, seed: int) -> None:
        self._resets += 1
        if self._resets == 3:
            raise RuntimeError("a fault of the environment")
