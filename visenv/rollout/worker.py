"""Defines `Worker`, a thread that makes the calls of one host and reports their results."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from visenv.rollout.hosts import EnvHost

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
