"""Collects concurrent requests into batches; a single request is hardly delayed.

Scorers do not use the loop of `visenv.background`, because a plain reward term or tool may run
there and wait for an encoder; on the same loop this would be a deadlock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from visenv.background import EventLoopThread

loop = EventLoopThread("visenv-scorers")

Run = Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
"""Returns one value for each request of a batch, in order. If a value is an exception, it is raised
for its request only.
"""


class _Waiting(NamedTuple):
    request: Any
    future: asyncio.Future[Any]
    since: float


class MicroBatcher:
    """Collects requests into batches, on one event loop.

    A batch is sent when it is full, or when its oldest request has waited `max_delay`, as soon as
    fewer than `max_concurrency` batches are in flight. Requests are sent in the order of their
    arrival.

    Args:
        run: Answers a batch. If it raises, the exception is raised for each request of the batch.
        max_batch_size: Maximum number of requests in a batch.
        max_delay: Maximum delay of a request in seconds.
        max_concurrency: Maximum number of batches in flight.
    """

    def __init__(
        self, run: Run, max_batch_size: int, max_delay: float, max_concurrency: int
    ) -> None:
        self._run = run
        self._max_batch_size = max_batch_size
        self._max_delay = max_delay
        self._max_concurrency = max_concurrency
        self._queue: deque[_Waiting] = deque()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, request: Any) -> Any:
        """Return the value of one request, which is answered in a batch."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(request, loop.create_future(), loop.time())
        self._queue.append(waiting)
        self._dispatch()
        return await waiting.future

    def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue and len(self._in_flight) < self._max_concurrency:
            delay = self._queue[0].since + self._max_delay - loop.time()
            if len(self._queue) < self._max_batch_size and delay > 0:
                if self._timer is None:
                    self._timer = loop.call_later(delay, self._on_timer)
                return
            count = min(self._max_batch_size, len(self._queue))
            taken = [self._queue.popleft() for _ in range(count)]
            # Requests that were cancelled while they waited are left out.
            if batch := [waiting for waiting in taken if not waiting.future.done()]:
                task = loop.create_task(self._answer(batch))
                self._in_flight.add(task)
                task.add_done_callback(self._on_done)

    def _on_timer(self) -> None:
        self._timer = None
        self._dispatch()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._dispatch()

    async def _answer(self, batch: list[_Waiting]) -> None:
        try:
            values = await self._run([waiting.request for waiting in batch])
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001  it reaches everyone who waits
            for waiting in batch:
                if not waiting.future.done():
                    waiting.future.set_exception(error)
        else:
            for waiting, value in zip(batch, values, strict=True):
                if waiting.future.done():
                    continue
                if isinstance(value, Exception):
                    waiting.future.set_exception(value)
                else:
                    waiting.future.set_result(value)
