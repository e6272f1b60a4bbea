"""Collects concurrent requests into batches on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

_QUIET_ROUNDS = 3
"""Iterations of the event loop without a new request, after which a batch is run.

After a reply, an episode steps its environment and sends its next request within one iteration. An
episode that waits for a tool would delay the others, so that the batch does not wait for it.
"""


class Batcher(Generic[Item]):
    """Runs requests that are submitted at the same time together, in the order of submission.

    Args:
        run: Processes a batch in place. It blocks the loop on purpose, so that the batches are the
            same in every run.
        size: Maximum number of requests in a batch.
    """

    def __init__(self, run: Callable[[Sequence[Item]], None], size: int) -> None:
        self._run = run
        self._size = size
        self._waiting: list[tuple[Item, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> None:
        """Wait until a batch with `item` has run; raise the exception of the batch, if any."""
        loop = asyncio.get_running_loop()
        if self._worker is None or self._worker.done() or self._worker.get_loop() is not loop:
            self._waiting = []
            self._worker = loop.create_task(self._work())
            self._worker.add_done_callback(_retrieve)
        done = loop.create_future()
        self._waiting.append((item, done))
        await done

    async def _work(self) -> None:
        while self._waiting:
            await self._settle()
            batch = [entry for entry in self._waiting[: self._size] if not entry[1].done()]
            self._waiting = self._waiting[self._size :]
            if batch:
                self._answer(batch)

    async def _settle(self) -> None:
        """Wait until the sessions that can submit a request without waiting have done so."""
        quiet = 0
        while quiet < _QUIET_ROUNDS and len(self._waiting) < self._size:
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = 0 if len(self._waiting) > before else quiet + 1

    def _answer(self, batch: Sequence[tuple[Item, asyncio.Future[None]]]) -> None:
        try:
            self._run([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - every session of the batch must get it
            for done in _unanswered(batch):
                done.set_exception(error)
        else:
            for done in _unanswered(batch):
                done.set_result(None)


def _retrieve(worker: asyncio.Task[None]) -> None:
    """Mark the exception of a worker as retrieved, because the event loop itself raises Ctrl-C.

    Otherwise asyncio prints a traceback when the worker is garbage-collected.
    """
    if not worker.cancelled():
        worker.exception()


def _unanswered(batch: Sequence[tuple[Any, asyncio.Future[None]]]) -> list[asyncio.Future[None]]:
    """Return the futures that were not canceled by Ctrl-C while the batch ran."""
    return [done for _, done in batch if not done.done()]
