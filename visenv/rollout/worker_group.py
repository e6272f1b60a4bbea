"""Defines `Worker`, a thread that makes the calls of one host, and the workers of a pool.

`WorkerGroup` manages pending calls with time limits, and replaces workers.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from visenv.rollout.hosts import EnvHost
from visenv.types import Failure

_SECONDS_TO_KILL = 60.0
"""Seconds to wait until a killed process has ended, which takes long only under high load."""


class WorkerResult(NamedTuple):
    """Holds the result of one call, which a worker puts into the common queue.

    Attributes:
        worker: The worker. Results of a worker that has been replaced are ignored.
        ticket: The number of the call; 0 is the number of making the environment.
        value: The result of the call (None for making the environment), or a `Failure`.
    """

    worker: Worker
    ticket: int
    value: Any


class ResultQueue(Protocol):
    """Defines the queue for the results of a worker; the thread of the worker calls `put`."""

    def put(self, answer: WorkerResult, /) -> None:
        """Add a result."""


class Worker:
    """Makes an environment in a new thread, and then runs one call after another in it.

    Args:
        index: Index of the worker in the pool.
        host: The host of the environment.
        answers: The queue for the results, which several workers can share.
    """

    def __init__(self, index: int, host: EnvHost, answers: ResultQueue) -> None:
        self.index = index
        self._host = host
        self._answers = answers
        self._calls: SimpleQueue[tuple[int, str, Mapping[str, Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, name=f"visenv-pool-{index}", daemon=True
        )
        self._thread.start()

    def call(self, ticket: int, method: str, arguments: Mapping[str, Any]) -> None:
        """Queue a call; its `WorkerResult` has the same ticket."""
        self._calls.put((ticket, method, arguments))

    def stop(self) -> None:
        """Tell the thread to close the environment after the queued calls, and to end."""
        self._calls.put(None)

    def abandon(self) -> bool:
        """Stop, and end a call that hangs if the host can do that; return whether it can."""
        self.stop()
        return self._host.kill()

    @property
    def alive(self) -> bool:
        """Return whether the thread is still running."""
        return self._thread.is_alive()

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    def _serve(self) -> None:
        failure = self._host.open()
        self._answers.put(WorkerResult(self, 0, failure))
        while (call := self._calls.get()) is not None:
            ticket, method, arguments = call
            value = self._host.call(method, arguments) if failure is None else failure
            self._answers.put(WorkerResult(self, ticket, value))
        self._host.close()


def end_workers(workers: Sequence[Worker], grace: float | None = None) -> None:
    """Wait until all stopped workers have ended; they end in parallel.

    Args:
        workers: The workers.
        grace: Time limit for all workers together, in seconds. After it, the remaining processes
            are killed, and the remaining threads are abandoned. By default 5 s plus 0.25 s for each
            worker, because a machine with few cores ends many processes one after another.
    """
    if grace is None:
        grace = 5.0 + 0.25 * len(workers)
    until = time.monotonic() + grace
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
    killed = [worker for worker in workers if worker.alive and worker.abandon()]
    for worker in killed:
        worker.join(_SECONDS_TO_KILL)


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
