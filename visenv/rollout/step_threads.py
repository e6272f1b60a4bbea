"""Runs steps in threads that do not delay the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Call = tuple[Callable[[], Any], Future[Any]]


class StepThreads:
    """Runs calls in daemon threads.

    Python waits at its exit for the threads of `concurrent.futures.ThreadPoolExecutor`, so that a
    step whose tool never replies would keep an interrupted process alive.

    Args:
        most: Maximum number of threads; further calls wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # threads that wait for a call, minus calls that wait for a thread

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Start a call in a free thread or a new one; return a future of its result."""
        future: Future[Any] = Future()
        with self._lock:
            is_new = self._free <= 0 and self._threads < self._most
            self._threads += is_new
            self._free -= not is_new
        self._calls.put((call, future))
        if is_new:
            threading.Thread(target=self._serve, name="visenv-step", daemon=True).start()
        return future

    def shutdown(self) -> None:
        """Cancel the calls that wait for a thread, and end each thread after its call."""
        with self._lock:
            while not self._calls.empty():
                waiting = self._calls.get()
                if waiting is not None:
                    waiting[1].cancel()
            for _ in range(self._threads):
                self._calls.put(None)

    def _serve(self) -> None:
        while (given := self._calls.get()) is not None:
            call, future = given
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001  raised where the result is awaited
                    future.set_exception(error)
            with self._lock:
                self._free += 1
            del call, future, given
