"""Manages the workers of a pool, their pending calls with time limits, and replacements."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from visenv.rollout.hosts import EnvHost
from visenv.rollout.worker import Worker, WorkerResult, end_workers
from visenv.types import Failure


class PendingCall(NamedTuple):
    """Represents an unanswered call: its ticket, its time limit in seconds, and its deadline.

    If the worker is still making its environment, the time limit starts when the environment is
    made. Otherwise the first call of a new worker could exceed its time limit before it starts.
    """

    ticket: int
    timeout: float
    deadline: float


class WorkerGroup:
    """Holds a fixed number of places, each with a worker that runs at most one call at a time.

    Args:
        count: Number of places.
        make_host: Makes the host of a new worker.
    """

    def __init__(self, count: int, make_host: Callable[[], EnvHost]) -> None:
        self._make_host = make_host
        self._answers: SimpleQueue[WorkerResult] = SimpleQueue()
        self._tickets = itertools.count(1)
        self._pending: dict[int, PendingCall] = {}
        self._opened: set[int] = set()
        self._abandoned: list[Worker] = []
        self._workers = [Worker(index, make_host(), self._answers) for index in range(count)]

    def wait_open(self) -> list[Failure]:
        """Wait until every environment is made; return the failures."""
        failures: list[Failure] = []
        while len(self._opened) < len(self._workers):
            answer = self._answers.get()
            self._opened.add(answer.worker.index)
            if answer.value is not None:
                failures.append(answer.value)
        return failures

    @property
    def busy(self) -> frozenset[int]:
        """Return the places with a call that has not been answered."""
        return frozenset(self._pending)

    def call(
        self, place: int, method: str, arguments: Mapping[str, Any], timeout: float | None
    ) -> None:
        """Send a call to the worker at `place`, which must not be busy.

        Args:
            place: Index of the worker.
            method: Name of the method.
            arguments: Keyword arguments of the method.
            timeout: Time limit in seconds; None sets no limit.
        """
        ticket = next(self._tickets)
        limit = math.inf if timeout is None else timeout
        begins = time.monotonic() if place in self._opened else math.inf
        self._pending[place] = PendingCall(ticket, limit, begins + limit)
        self._workers[place].call(ticket, method, arguments)

    def collect(self, timeout: float | None) -> dict[int, Any]:
        """Wait for answers.

        Args:
            timeout: Seconds to wait for the first answer; None waits until there is one.

        Returns:
            Results and `Failure` values by place. A call that exceeded its time limit has a
            `Failure`. Empty if nothing arrived within `timeout`, or if no call is pending.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self._pending:
            values = self._received(until) | self._expired()
            if values or time.monotonic() >= until:
                return values
        return {}

    def replace(self, place: int) -> None:
        """Start a new worker at a place; abandon the old worker and ignore its answers."""
        old = self._workers[place]
        old.abandon()
        self._abandoned.append(old)
        self._pending.pop(place, None)
        self._opened.discard(place)
        self._workers[place] = Worker(place, self._make_host(), self._answers)

    def close(self, grace: float | None = None) -> None:
        """End all workers; see `end_workers`."""
        for worker in self._workers:
            if worker.index in self._pending or worker.index not in self._opened:
                worker.abandon()
            else:
                worker.stop()
        end_workers((*self._workers, *self._abandoned), grace)
        self._pending.clear()

    def _received(self, until: float) -> dict[int, Any]:
        """Return the answers in the queue.

        If the queue is empty, wait for an answer until the time `until` or until the first deadline
        of a pending call, whichever is earlier.
        """
        nearest = min(until, *(pending.deadline for pending in self._pending.values()), math.inf)
        wait = None if nearest == math.inf else max(0.0, nearest - time.monotonic())
        values: dict[int, Any] = {}
        try:
            self._sort(self._answers.get(timeout=wait), values)
            while True:
                self._sort(self._answers.get_nowait(), values)
        except Empty:
            return values

    def _sort(self, answer: WorkerResult, values: dict[int, Any]) -> None:
        place = answer.worker.index
        if answer.worker is not self._workers[place]:
            return  # the worker was replaced: its answer does not belong to a pending call
        pending = self._pending.get(place)
        if answer.ticket == 0:
            self._opened.add(place)
            if pending is not None:
                self._pending[place] = pending._replace(deadline=time.monotonic() + pending.timeout)
        elif pending is not None and answer.ticket == pending.ticket:
            del self._pending[place]
            values[place] = answer.value

    def _expired(self) -> dict[int, Any]:
        now = time.monotonic()
        late = [place for place, pending in self._pending.items() if pending.deadline <= now]
        return {
            place: Failure(
                "timeout", "timeout", f"no reply within {self._pending.pop(place).timeout:g} s."
            )
            for place in late
        }
