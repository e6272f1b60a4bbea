"""One thread that makes calls on one host, and tells when they are done."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from visenv.rollout.hosts import Host


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

    def abandon(self) -> None:
        """End as soon as may be, whatever the environment is doing."""
        self.stop()
        self._host.kill()

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
