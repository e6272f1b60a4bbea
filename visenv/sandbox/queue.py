"""Who runs next: a fair queue of programs, with a deadline and an account of the waiting.

After start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 2): the start tag of an
owner is the larger of the virtual time and its finish tag; a free worker takes a program of the
smallest start tag, which becomes the virtual time; a program of s seconds moves its owner's finish
tag s beyond its start tag. Lengths are not known before, so that tags are computed when a worker is
free. The virtual time also grows by s over the number of owners that want to run, so that owners
that come anew cannot keep an old one waiting forever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from visenv.errors import ServiceError


class Waits(NamedTuple):
    """What programs have waited for a worker.

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


class _Waiting:
    """A program that waits: its owner, and the start tag with which it was given a worker."""

    __slots__ = ("owner", "ready", "start")

    def __init__(self, owner: Hashable) -> None:
        self.owner, self.start = owner, 0.0
        self.ready = threading.Event()


class FairQueue:
    """Shares workers fairly among owners. Use it from any thread.

    Args:
        workers: Programs at a time.
        wait_seconds: Longest time that a program waits for a worker.
    """

    def __init__(self, workers: int, wait_seconds: float) -> None:
        self._free = workers
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._finish: dict[Hashable, float] = {}
        self._virtual = 0.0
        self._waits = Waits()

    @property
    def waits(self) -> Waits:
        """What programs have waited so far."""
        return self._waits

    @contextmanager
    def worker(self, owner: Hashable) -> Iterator[None]:
        """Wait for a worker, and hold it.

        Args:
            owner: For whom the program runs; owners get the same share of time.

        Raises:
            ServiceError: If no worker was free before the deadline.
        """
        start = self._enter(owner)
        began = time.monotonic()
        try:
            yield
        finally:
            self._leave(owner, start, time.monotonic() - began)

    def _enter(self, owner: Hashable) -> float:
        since = time.monotonic()
        with self._lock:
            mine = _Waiting(owner)
            self._waiting.append(mine)
            self._serve()
        # The lock decides whether the worker or the deadline came first.
        mine.ready.wait(self._wait_seconds)
        with self._lock:
            waited = time.monotonic() - since
            if mine in self._waiting:
                self._waiting.remove(mine)
                self._waits = self._waits._replace(given_up=self._waits.given_up + 1)
                reason = f"no worker was free within {self._wait_seconds:g} s"
                raise ServiceError("sandbox", reason)
            programs, seconds, longest, given_up = self._waits
            self._waits = Waits(programs + 1, seconds + waited, max(longest, waited), given_up)
        return mine.start

    def _leave(self, owner: Hashable, start: float, seconds: float) -> None:
        with self._lock:
            self._free += 1
            # Two programs of one owner may have begun at the same tag: both are counted.
            self._finish[owner] = max(start, self._finish.get(owner, 0.0)) + seconds
            self._virtual += seconds / len({owner, *(each.owner for each in self._waiting)})
            self._serve()
            # Whoever is behind the virtual time begins at it: nothing needs to be remembered.
            self._finish = {who: at for who, at in self._finish.items() if at > self._virtual}

    def _serve(self) -> None:
        """Give free workers to the smallest start tags; of equal ones, to the first."""
        while self._free and self._waiting:
            chosen = min(self._waiting, key=self._start)
            self._waiting.remove(chosen)
            chosen.start = self._virtual = self._start(chosen)
            self._free -= 1
            chosen.ready.set()

    def _start(self, waiting: _Waiting) -> float:
        return max(self._virtual, self._finish.get(waiting.owner, 0.0))
