"""Defines executors that run each environment in its own worker, a thread or a process.

`EpisodePool` uses the same workers and hosts. If a call exceeds its time limit, it returns a
failure, and its worker is abandoned (a thread) or killed (a process).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from visenv.errors import CodeError, ConfigurationError
from visenv.rollout.adapter import EnvAdapter, MakeEnv
from visenv.rollout.executor import EnvFailedError
from visenv.rollout.hosts import EnvHost, LocalEnvHost, ProcessEnvHost
from visenv.rollout.worker_group import Worker, WorkerResult, end_workers
from visenv.terminal import printable_lines
from visenv.types import Failure

_log = logging.getLogger(__name__)


class TimeLimits(NamedTuple):
    """Holds the time limits of an environment in seconds; None sets no limit.

    Attributes:
        call: Time limit of a reset or a step.
        start: Time limit of making the environment.
    """

    call: float | None
    start: float | None


class WorkerSlot:
    """Runs its environment in a host, which a separate thread calls.

    Args:
        host: Makes and runs the environment.
        limits: Time limits of the calls.
    """

    def __init__(self, host: EnvHost, limits: TimeLimits) -> None:
        self.usable = True
        self.begun = False
        self._host = host
        self._limits = limits
        self._tickets = 0
        self._made: Future[Any] = Future()
        self._answers = {0: self._made}
        self.worker = Worker(0, host, self)

    @property
    def made(self) -> bool:
        """Return whether the environment is made, or could not be made."""
        return self._made.done()

    async def open(self) -> None:
        """Wait until the environment is made."""
        await self._wait(self._made, "making the environment", self._limits.start)

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the `EnvAdapter` without blocking the event loop."""
        self._tickets += 1
        answer = self._answers[self._tickets] = Future()
        self.worker.call(self._tickets, method, arguments)
        return await self._wait(answer, method, self._limits.call)

    def close(self) -> None:
        """Close the environment, or abandon it if it is not usable, without waiting."""
        if self.usable:
            self.worker.stop()
        else:
            self.worker.abandon()

    def put(self, answer: WorkerResult) -> None:
        """Receive an answer of the worker, in the thread of the worker."""
        _settle(self._answers[answer.ticket], answer.value)
        del self._answers[answer.ticket]

    async def _wait(self, answer: Future[Any], what: str, limit: float | None) -> Any:
        """Wait for an answer and return its value; the slot is not usable until then."""
        self.usable, known = False, answer.done()
        loop = asyncio.get_running_loop()
        late = Failure("timeout", "timeout", f"{what} took longer than {limit} s.")
        # The timer sets the failure only if the worker has not answered. The timer can fire late,
        # because a model computes on the event loop; an answer that arrived before it still counts.
        timer = None if limit is None else loop.call_later(limit, _settle, answer, late)
        try:
            value = await asyncio.wrap_future(answer)
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(value, Failure):
            self.usable = value.environment_is_usable
            if value.bug:
                raise CodeError(value.bug)
            if value.traceback and not known:
                shown = printable_lines(value.traceback)
                _log.warning("An environment failed and is replaced.\n%s", shown)
            if value.source == "configuration":
                raise ConfigurationError(value.reason)
            raise EnvFailedError(value)
        self.usable = True
        return value


def _settle(answer: Future[Any], value: Any) -> None:
    """Set the result of a future, unless it is done or cancelled."""
    with suppress(InvalidStateError):
        answer.set_result(value)


class WorkerExecutor:
    """Makes slots whose environments run in workers.

    Args:
        make_host: Makes a host; its argument is the function that makes the environment.
        timeout: Time limit of a reset or a step, in seconds; None sets no limit.
        start_timeout: Time limit of making an environment, in seconds; None sets no limit.

    Raises:
        ConfigurationError: If a time limit is not above 0.
    """

    crowded = False
    parallel = True

    def __init__(
        self,
        make_host: Callable[[Callable[[], EnvAdapter]], EnvHost],
        timeout: float | None,
        start_timeout: float | None,
    ) -> None:
        for limit in (timeout, start_timeout):
            if limit is not None and not limit > 0:
                raise ConfigurationError(f"A time limit must be above 0 seconds, got {limit}.")
        self._make_host = make_host
        self._limits = TimeLimits(timeout, start_timeout)
        self._workers: list[Worker] = []

    def slot(self, make_env: MakeEnv) -> WorkerSlot:
        """Return a slot, and start to make its environment."""
        slot = WorkerSlot(self._make_host(partial(_adapter, make_env)), self._limits)
        self._workers = [each for each in self._workers if each.alive] + [slot.worker]
        return slot

    def close(self, grace: float | None = None) -> None:
        """Wait until the workers of closed slots have ended; see `end_workers`."""
        end_workers(self._workers, grace)


def _adapter(make_env: MakeEnv) -> EnvAdapter:
    return EnvAdapter(make_env())


class ThreadExecutor(WorkerExecutor):
    """Runs environments in threads of this process.

    Use it for tools that wait (servers, simulators in other processes) or that release Python's
    global interpreter lock. A call that hangs is abandoned: its thread ends when the call ends.

    Args:
        timeout: Time limit of a reset or a step, in seconds; None sets no limit.
        start_timeout: Time limit of making an environment, in seconds; None sets no limit.
    """

    def __init__(self, timeout: float | None = 120.0, start_timeout: float | None = 600.0) -> None:
        super().__init__(LocalEnvHost, timeout, start_timeout)


class ProcessExecutor(WorkerExecutor):
    """Runs each environment in its own process, which is killed if it hangs.

    Use it for tools that hold Python's global interpreter lock, crash, or leak memory. The function
    that makes the environment is sent by cloudpickle.

    Args:
        timeout: Time limit of a reset or a step, in seconds; None sets no limit.
        start_timeout: Time limit of starting the process and making the environment, in seconds;
            None sets no limit.
    """

    def __init__(self, timeout: float | None = 120.0, start_timeout: float | None = 600.0) -> None:
        super().__init__(ProcessEnvHost, timeout, start_timeout)
