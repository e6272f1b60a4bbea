"""Decides which program runs next: a fair queue with a deadline that measures waits.

After start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 2): the start tag of an
owner is the larger of the virtual time and its finish tag; a free worker takes a program of the
smallest start tag, which becomes the virtual time; a program of s seconds moves its owner's finish
tag s beyond its start tag. Lengths are not known before, so that tags are computed when a worker is
free. The virtual time also grows by s over the number of owners that want to run, so that owners
that arrive later cannot keep an old one waiting forever.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from visenv.errors import ServiceError
from visenv.sandbox.account import add_wait


class QueueWaits(NamedTuple):
    """Holds how long programs have waited for a worker.

    Attributes:
        programs: How many programs got a worker.
        seconds: How long all of them waited together.
        longest: How long one of them waited at most, seconds.
        given_up: How many programs did not get a worker before the deadline.
    """

    programs: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    given_up: int = 0


class _Turn:
    """A program in the queue, and the worker that it gets.

    Attributes:
        owner: For whom the program runs.
        since: When it began to wait, a `time.monotonic` value.
        ready: Done when it has a worker.
        start: The start tag with which it was given the worker.
        began: When it was given the worker.
    """

    __slots__ = ("began", "owner", "ready", "since", "start")

    def __init__(self, owner: Hashable) -> None:
        self.owner, self.start, self.began = owner, 0.0, 0.0
        self.since = time.monotonic()
        self.ready: Future[None] = Future()


class FairQueue:
    """Shares workers fairly among owners. Use it from any thread and any event loop.

    Args:
        workers: Programs at a time.
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
        """Return how long programs have waited so far."""
        return self._waits

    @contextmanager
    def worker(self, owner: Hashable) -> Iterator[None]:
        """Wait for a worker, and hold it.

        Args:
            owner: For whom the program runs; owners get the same share of time.

        Raises:
            ServiceError: If no worker was free before the deadline.
        """
        turn = _Turn(owner)
        try:  # around the wait too: an interrupt may come after the worker was given
            self._join(turn)
            wait([turn.ready], self._wait_seconds)
            self._require(turn)
            yield
        finally:
            self._leave(turn)

    async def acquire(self, owner: Hashable) -> Callable[[], None]:
        """Wait for a worker without blocking the event loop.

        Args:
            owner: For whom the program runs; owners get the same share of time.

        Returns:
            The function that gives the worker back, to be called once, from any thread.

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
        """Raise `ServiceError` if the deadline came before the worker; the lock decides."""
        add_wait(time.monotonic() - turn.since)
        with self._lock:
            if turn not in self._waiting:
                return
            self._waiting.remove(turn)
            self._waits = self._waits._replace(given_up=self._waits.given_up + 1)
        raise ServiceError("sandbox", f"no worker was free within {self._wait_seconds:g} s")

    def _leave(self, turn: _Turn) -> None:
        """Take a program out of the queue, or its worker back."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.ready.done():
                self._take_back(turn.owner, turn.start, time.monotonic() - turn.began)

    def _take_back(self, owner: Hashable, start: float, seconds: float) -> None:
        self._free += 1
        # Two programs of one owner may have begun at the same tag: both are counted.
        self._finish[owner] = max(start, self._finish.get(owner, 0.0)) + seconds
        self._virtual += seconds / len({owner, *(each.owner for each in self._waiting)})
        self._serve()
        # An owner behind the virtual time begins at it: nothing needs to be remembered.
        self._finish = {who: at for who, at in self._finish.items() if at > self._virtual}

    def _serve(self) -> None:
        """Give free workers to the smallest start tags; of equal ones, to the first."""
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
