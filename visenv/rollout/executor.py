"""Defines executors, which run environments; `InlineExecutor` uses the caller's process.

`StepThreads` runs steps in threads that do not delay the end of the process.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

from visenv.background import wait
from visenv.errors import CodeError, VisenvError
from visenv.rollout.adapter import EnvAdapter, MakeEnv
from visenv.rollout.hosts import guarded
from visenv.types import Failure

_Call = tuple[Callable[[], Any], Future[Any]]

_log = logging.getLogger(__name__)
_MAX_THREADS = 256
"""Maximum number of steps that wait for asynchronous tools at the same time."""


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


class EnvFailedError(VisenvError):
    """Raised by a slot whose environment failed to return a result; aborts only the episode.

    Args:
        failure: The reason, which ends the episode.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class EnvSlot(Protocol):
    """Defines a slot for one environment, in any process or machine, with one episode at a time.

    Attributes:
        usable: Whether the environment can be called. False after a failure that the environment
            cannot recover from; in a slot with a worker, and for a step in a thread, also during a
            call.
        begun: Whether a reset of the environment has succeeded; the caller of the slot sets it.
        made: Whether the environment is made, or could not be made: `open` then returns or raises
            without waiting.
    """

    usable: bool
    begun: bool

    @property
    def made(self) -> bool:
        """Return whether the environment is made, or could not be made; see the attributes."""
        ...

    async def open(self) -> None:
        """Wait until the environment is made.

        Raises:
            EnvFailedError: If the environment cannot be made.
            ConfigurationError: If an option of the environment is wrong.
        """
        ...

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the `EnvAdapter` in the slot.

        Raises:
            EnvFailedError: If the environment raised an exception, took too long, or died.
            CodeError: If the exception is a bug of a user's code.
            VisenvError: If the environment raised this error and is called directly (`InlineSlot`).
                A slot with a worker raises `EnvFailedError` instead, except for a
                `ConfigurationError`.
        """
        ...

    def close(self) -> None:
        """Close the environment, or abandon it if it is not usable, without waiting."""
        ...


class Executor(Protocol):
    """Defines an executor, which makes slots with one environment each.

    Attributes:
        crowded: Whether resources are limited, so that a new environment may not start until
            another one is closed.
        parallel: Whether several environments are called at the same time, so that the order of
            their results depends on time.
    """

    crowded: bool
    parallel: bool

    def slot(self, make_env: MakeEnv) -> EnvSlot:
        """Return a slot with a new environment."""
        ...

    def close(self) -> None:
        """Wait for a limited time until the calls in closed slots have ended."""
        ...


class InlineSlot:
    """Calls its environment on the event loop.

    A step blocks the event loop, with one exception: if the environment may wait for an
    asynchronous tool and `threads` is given, the step runs in a thread, so that other episodes
    continue.

    Args:
        adapter: The environment.
        isolate: Whether an unexpected exception is logged as a warning and raised as an
            `EnvFailedError`. If False, the exception is raised unchanged. A `VisenvError` is always
            raised unchanged.
        threads: The threads for such steps; None runs all steps on the event loop.
    """

    def __init__(
        self,
        adapter: EnvAdapter,
        isolate: bool = True,
        threads: StepThreads | None = None,
    ) -> None:
        self.usable = True
        self.begun = False
        self._adapter = adapter
        self._isolate = isolate
        self._threads = threads if adapter.waits else None
        self._step: Future[Any] | None = None  # the last step that was given to a thread

    @property
    def made(self) -> bool:
        """Return True: the environment exists."""
        return True

    async def open(self) -> None:
        """Return immediately."""

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the `EnvAdapter`; `finish` waits without blocking the event loop."""
        try:
            if method == "finish":
                return await wait(self._adapter.submit_finish())
            call = partial(getattr(self._adapter, method), **arguments)
            if self._threads is None:
                return call()
            return await self._in_thread(self._threads, call)
        except VisenvError:
            raise
        except (Exception, SystemExit) as error:  # sys.exit() in a tool must not end the run
            if not self._isolate:
                raise
            self.usable = False
            failure = Failure.of(error)
            if failure.bug:
                raise CodeError(failure.bug) from error
            _log.warning("An environment failed and is replaced.", exc_info=error)
            raise EnvFailedError(failure) from error

    async def _in_thread(self, threads: StepThreads, call: Callable[[], Any]) -> Any:
        """Run a step in a thread; if the wait is cancelled, the slot is not usable any more.

        The step itself cannot be cancelled, and no other episode may call its environment.
        """
        self.usable = False
        self._step = threads.submit(call)
        try:
            return await asyncio.wrap_future(self._step)
        finally:
            self.usable = self._step.done()

    def close(self) -> None:
        """Close the environment; if it failed before, exceptions are ignored.

        An environment whose step still runs in a thread is closed when the step ends.
        """
        if self.usable:
            self._adapter.close()
        elif self._step is None:
            guarded(self._adapter.close)
        else:
            self._step.add_done_callback(lambda _: guarded(self._adapter.close))


class InlineExecutor:
    """Runs environments in the process of the caller, on its event loop.

    Args:
        threads: Whether a step that may wait for an asynchronous tool runs in a thread, so that
            other episodes continue. Without threads, all steps have the same order in every run.
    """

    crowded = False

    def __init__(self, *, threads: bool = True) -> None:
        self.parallel = threads
        self._threads = StepThreads(_MAX_THREADS) if threads else None

    def slot(self, make_env: MakeEnv) -> InlineSlot:
        """Return a slot with a new environment."""
        return InlineSlot(EnvAdapter(make_env()), threads=self._threads)

    def close(self) -> None:
        """End the threads; a step that still waits is abandoned."""
        if self._threads is not None:
            self._threads.shutdown()
