"""One thread that makes calls on one host, and tells when they are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from visenv.rollout.hosts import Host

_SECONDS_TO_KILL = 5.0
"""A killed process is gone at once; this only bounds the wait on a machine without time for it."""


class Answer(NamedTuple):
    """What a worker put into the common queue.

    Attributes:
        worker: Who: an answer of a worker that has been replaced is nobody's.
        ticket: The call it answers; 0 says that the environment is made.
        value: The result, or a `Failure`.
    """

    worker: Worker
    ticket: int
    value: Any


class Answers(Protocol):
    """Where a worker puts its answers, from its own thread: a queue."""

    def put(self, answer: Answer, /) -> None:
        """Take one."""


class Worker:
    """Makes its environment at once, then one call after another.

    Args:
        index: Its place in the pool.
        host: Where the environment lives.
        answers: The queue, which may be common to all workers.
    """

    def __init__(self, index: int, host: Host, answers: Answers) -> None:
        self.index = index
        self._host = host
        self._answers = answers
        self._calls: SimpleQueue[tuple[int, str, Mapping[str, Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, name=f"visenv-pool-{index}", daemon=True
        )
        self._thread.start()

    def call(self, ticket: int, method: str, arguments: Mapping[str, Any]) -> None:
        """Queue a call; its `Answer` carries the ticket."""
        self._calls.put((ticket, method, arguments))

    def stop(self) -> None:
        """Close the environment after the calls that are queued, and end."""
        self._calls.put(None)

    def abandon(self) -> bool:
        """End as soon as possible; return whether a call that hangs could be ended."""
        self.stop()
        return self._host.kill()

    @property
    def alive(self) -> bool:
        """Whether its thread has not ended."""
        return self._thread.is_alive()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end, at most so many seconds."""
        self._thread.join(timeout)

    def _serve(self) -> None:
        failure = self._host.open()
        self._answers.put(Answer(self, 0, failure))
        while (call := self._calls.get()) is not None:
            ticket, method, arguments = call
            value = self._host.call(method, arguments) if failure is None else failure
            self._answers.put(Answer(self, ticket, value))
        self._host.close()


def end_workers(workers: Sequence[Worker], grace: float | None = None) -> None:
    """Wait for workers that were stopped; they end at the same time.

    Args:
        workers: The workers.
        grace: Seconds to wait for all of them; then their processes are killed, and threads that
            hang are left behind. By default 5 s, and 0.25 s more for each worker: a machine with
            few cores ends many processes one after another.
    """
    if grace is None:
        grace = 5.0 + 0.25 * len(workers)
    until = time.monotonic() + grace
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
    killed = [worker for worker in workers if worker.alive and worker.abandon()]
    for worker in killed:
        worker.join(_SECONDS_TO_KILL)
