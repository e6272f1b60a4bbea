"""Executors whose environments have workers of their own: threads or processes.

Environments run in the same hosts as those of the vector environment. A call that takes too long is
answered by a failure, and its worker is abandoned (a thread) or killed (a process).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError
from visenv.rollout.adapter import EnvAdapter, MakeEnv
from visenv.rollout.executor import EnvFailedError
from visenv.rollout.hosts import Host, LocalHost, ProcessHost
from visenv.rollout.worker import Answer, Worker, end_workers
from visenv.types import Failure

_log = logging.getLogger(__name__)


class TimeLimits(NamedTuple):
    """Seconds after which an environment is given up; None sets no limit.

    Attributes:
        call: Limit of a reset or a step.
        start: Limit of making the environment.
    """

    call: float | None
    start: float | None


class WorkerSlot:
    """An environment in a host, called by a thread of its own.

    Args:
        host: Makes the environment and runs it.
        limits: Time limits of its calls.
    """

    def __init__(self, host: Host, limits: TimeLimits) -> None:
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
        """Whether the environment is made, or could not be made."""
        return self._made.done()

    async def open(self) -> None:
        """Wait until the environment is made."""
        await self._wait(self._made, "making the environment", self._limits.start)

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call it while others go on."""
        self._tickets += 1
        answer = self._answers[self._tickets] = Future()
        self.worker.call(self._tickets, method, arguments)
        return await self._wait(answer, method, self._limits.call)

    def close(self) -> None:
        """Close the environment, or abandon it, without waiting."""
        if self.usable:
            self.worker.stop()
        else:
            self.worker.abandon()

    def put(self, answer: Answer) -> None:
        """Take an answer from the worker, in its thread."""
        _settle(self._answers.pop(answer.ticket), answer.value)

    async def _wait(self, answer: Future[Any], what: str, limit: float | None) -> Any:
        """Return the answered value; the slot is not usable until then."""
        self.usable, known = False, answer.done()
        loop = asyncio.get_running_loop()
        late = Failure("timeout", "timeout", f"{what} took longer than {limit} s.")
        # Late is what has not been answered by then. A loop that was busy itself (a model computes
        # on it) may notice an answer late that came in time.
        timer = None if limit is None else loop.call_later(limit, _settle, answer, late)
        try:
            value = await asyncio.wrap_future(answer)
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(value, Failure):
            self.usable = value.environment_is_usable
            if value.traceback and not known:
                _log.warning("An environment failed and is replaced.\n%s", value.traceback)
            if value.source == "configuration":
                raise ConfigurationError(value.reason)
            raise EnvFailedError(value)
        self.usable = True
        return value


def _settle(answer: Future[Any], value: Any) -> None:
    """Set the result, unless the future is done or cancelled."""
    with suppress(InvalidStateError):
        answer.set_result(value)


class WorkerExecutor:
    """Makes slots with workers.

    Args:
        make_host: Makes a host for what it is told how to make.
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds for making an environment; None for no limit.

    Raises:
        ConfigurationError: If a limit is not above 0.
    """

    crowded = False

    def __init__(
        self,
        make_host: Callable[[Callable[[], EnvAdapter]], Host],
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
        """Return a slot whose environment is being made."""
        slot = WorkerSlot(self._make_host(partial(_adapter, make_env)), self._limits)
        self._workers = [each for each in self._workers if each.alive] + [slot.worker]
        return slot

    def close(self, grace: float | None = None) -> None:
        """Wait for the workers of closed slots, and end those that hang; see `end_workers`."""
        end_workers(self._workers, grace)


def _adapter(make_env: MakeEnv) -> EnvAdapter:
    return EnvAdapter(make_env())


class ThreadExecutor(WorkerExecutor):
    """Environments in threads of this process.

    For tools that wait (servers, simulators in other processes) or compute without Python's lock.
    A call that hangs is left behind: its thread ends when the call does.

    Args:
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds for making an environment; None for no limit.
    """

    def __init__(self, timeout: float | None = 120.0, start_timeout: float | None = 600.0) -> None:
        super().__init__(LocalHost, timeout, start_timeout)


class ProcessExecutor(WorkerExecutor):
    """Environments in processes of their own, one each, killed when they hang.

    For tools that hold Python's lock, crash, or leak. What makes the environment is handed over by
    cloudpickle.

    Args:
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds for starting the process and making the environment; None for no
            limit.
    """

    def __init__(self, timeout: float | None = 120.0, start_timeout: float | None = 600.0) -> None:
        super().__init__(ProcessHost, timeout, start_timeout)
