"""Schedules programs with a fair queue, which has a deadline and measures waits.

The queue implements start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 2). The
start tag of an owner is the maximum of the virtual time and the owner's finish tag. A free worker
runs a program with the smallest start tag, which becomes the virtual time. A program of s seconds
sets its owner's finish tag to its start tag plus s. Durations are not known in advance, so that
tags are computed when a worker becomes free. The virtual time also grows by s divided by the number
of owners that want to run, so that owners that arrive later cannot block an earlier one forever.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import NamedTuple

from visenv.errors import ServiceError

_block_waits: ContextVar[list[float] | None] = ContextVar("sandbox_waits", default=None)


@contextmanager
def sandbox_waits() -> Iterator[list[float]]:
    """Collect the waits of all programs that are run in the block or in tasks started in it.

    ::

        with sandbox_waits() as waits:
            env.step(action)
        sum(waits)  # seconds

    Yields:
        The seconds of each wait, also of waits that ended at the deadline. The waits of an inner
        block are not added to those of an outer block.
    """
    waits = list[float]()
    token = _block_waits.set(waits)
    try:
        yield waits
    finally:
        _block_waits.reset(token)


def add_wait(seconds: float) -> None:
    """Add a wait to the innermost block around the caller, if there is one."""
    waits = _block_waits.get()
    if waits is not None:
        waits.append(seconds)  # atomic: tasks of a block may run in several threads


class QueueWaits(NamedTuple):
    """Holds statistics of the time that programs waited for a worker.

    Attributes:
        programs: Number of programs that got a worker.
        seconds: Sum of their waits, seconds.
        longest: Longest wait of a program, seconds.
        given_up: Number of programs that did not get a worker before the deadline.
    """

    programs: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    given_up: int = 0


class _Turn:
    """Represents a program in the queue, and the worker that it gets.

    Attributes:
        owner: The owner of the program.
        since: Start of its wait, a `time.monotonic` value.
        ready: Done when it has a worker.
        start: The start tag when it got the worker.
        began: Time when it got the worker.
    """

    __slots__ = ("began", "owner", "ready", "since", "start")

    def __init__(self, owner: Hashable) -> None:
        self.owner, self.start, self.began = owner, 0.0, 0.0
        self.since = time.monotonic()
        self.ready: Future[None] = Future()


class FairQueue:
    """Shares workers fairly among owners. It can be used from any thread and any event loop.

    Args:
        workers: Programs that run at the same time.
        wait_seconds: Longest time that a program waits for a worker; at most
            `threading.TIMEOUT_MAX`.
    """

    def __init__(self, workers: int, wait_seconds: float) -> None:
        self._free = workers
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._waiting: list[_Turn] = []
        self._finish: dict[Hashable, float] = {}
        self._virtual = 0.0
        self._waits = QueueWaits()

    @property
    def waits(self) -> QueueWaits:
        """Return the statistics of all waits so far."""
        return self._waits

    @contextmanager
    def worker(self, owner: Hashable) -> Iterator[None]:
        """Wait for a worker, and hold it in the block.

        Args:
            owner: The owner of the program; all owners get the same share of time.

        Raises:
            ServiceError: If no worker was free before the deadline.
        """
        turn = _Turn(owner)
        try:  # includes the wait: an interrupt may come after a worker was assigned
            self._join(turn)
            wait([turn.ready], self._wait_seconds)
            self._require(turn)
            yield
        finally:
            self._leave(turn)

    async def acquire(self, owner: Hashable) -> Callable[[], None]:
        """Wait for a worker without blocking the event loop.

        Args:
            owner: The owner of the program; all owners get the same share of time.

        Returns:
            A function that releases the worker; call it once, from any thread.

        Raises:
            ServiceError: If no worker was free before the deadline.
        """
        turn = _Turn(owner)
        try:
            self._join(turn)
            await asyncio.wait([asyncio.wrap_future(turn.ready)], timeout=self._wait_seconds)
            self._require(turn)
        except BaseException:
            self._leave(turn)
            raise
        return partial(self._leave, turn)

    def _join(self, turn: _Turn) -> None:
        with self._lock:
            self._waiting.append(turn)
            self._serve()

    def _require(self, turn: _Turn) -> None:
        """Raise `ServiceError` if the deadline came before the worker.

        The lock decides the order.
        """
        add_wait(time.monotonic() - turn.since)
        with self._lock:
            if turn not in self._waiting:
                return
            self._waiting.remove(turn)
            self._waits = self._waits._replace(given_up=self._waits.given_up + 1)
        raise ServiceError("sandbox", f"no worker was free within {self._wait_seconds:g} s")

    def _leave(self, turn: _Turn) -> None:
        """Remove a program from the queue, or release its worker."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.ready.done():
                self._take_back(turn.owner, turn.start, time.monotonic() - turn.began)

    def _take_back(self, owner: Hashable, start: float, seconds: float) -> None:
        self._free += 1
        # Two programs of one owner may have the same start tag; both are counted.
        self._finish[owner] = max(start, self._finish.get(owner, 0.0)) + seconds
        self._virtual += seconds / len({owner, *(each.owner for each in self._waiting)})
        self._serve()
        # An owner whose finish tag is not after the virtual time starts at the virtual time: drop
        # its tag.
        self._finish = {who: at for who, at in self._finish.items() if at > self._virtual}

    def _serve(self) -> None:
        """Assign free workers to the programs with the smallest start tags.

        Ties go to the earliest.
        """
        while self._free and self._waiting:
            chosen = min(self._waiting, key=self._start)
            self._waiting.remove(chosen)
            chosen.start = self._virtual = self._start(chosen)
            chosen.began = time.monotonic()
            self._free -= 1
            self._count(chosen.began - chosen.since)
            chosen.ready.set_result(None)

    def _start(self, turn: _Turn) -> float:
        return max(self._virtual, self._finish.get(turn.owner, 0.0))

    def _count(self, waited: float) -> None:
        programs, seconds, longest, given_up = self._waits
        self._waits = QueueWaits(programs + 1, seconds + waited, max(longest, waited), given_up)
