"""Executors whose environments have workers of their own: threads, or processes.

They run in the hosts of the episode pool. A call that takes too long is answered by a failure; what
it was doing is left behind (a thread) or killed (a process).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from visenv.errors import ConfigurationError
from visenv.pool.failure import Failure
from visenv.pool.hosts import Host, LocalHost, ProcessHost
from visenv.pool.worker import Answer, Worker
from visenv.rollout.executor import EnvFailedError
from visenv.rollout.stage import Env, MakeEnv, Stage


class Elsewhere(gym.Env[Any, str]):
    """Stands in for an environment that is in another process: there is nothing to look into."""


class Limits(NamedTuple):
    """Seconds after which an environment is given up; None is never.

    Attributes:
        call: For a reset or a step.
        start: For being made.
    """

    call: float | None
    start: float | None


class WorkerSeat:
    """An environment in a host, called by a thread of its own.

    Args:
        host: Where the environment will be made.
        limits: When it is given up.
    """

    def __init__(self, host: Host, limits: Limits) -> None:
        self.usable = True
        self.begun = False
        self._host = host
        self._limits = limits
        self._tickets = 0
        self._made: Future[Any] = Future()
        self._answers = {0: self._made}
        self.worker = Worker(0, host, self)

    async def open(self) -> Env:
        """Wait until the environment is made; what there is of it in this process."""
        await self._wait(self._made, "making the environment", self._limits.start)
        stage = getattr(self._host, "env", None)
        return stage.env if isinstance(stage, Stage) else Elsewhere()

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
        """The value that was answered; the seat is not usable until then."""
        self.usable = False
        loop = asyncio.get_running_loop()
        late = Failure("timeout", f"{what} took longer than {limit} s.")
        # Late is what has not been answered by then. A loop that was busy itself (a model computes
        # on it) may notice an answer late that came in time.
        timer = None if limit is None else loop.call_later(limit, _settle, answer, late)
        try:
            value = await asyncio.wrap_future(answer)
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(value, Failure):
            self.usable = value.fate != "broken"
            if value.fate == "refused":
                raise ConfigurationError(value.reason)
            raise EnvFailedError(value)
        self.usable = True
        return value


def _settle(answer: Future[Any], value: Any) -> None:
    """Answer, unless somebody was faster or nobody waits any more."""
    with suppress(InvalidStateError):
        answer.set_result(value)


class WorkerExecutor:
    """Makes seats with workers.

    Args:
        make_host: Makes a host for what it is told how to make.
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds for making an environment; None for no limit.

    Raises:
        ConfigurationError: If a limit is not above 0.
    """

    def __init__(
        self,
        make_host: Callable[[Callable[[], Stage]], Host],
        timeout: float | None,
        start_timeout: float | None,
    ) -> None:
        for limit in (timeout, start_timeout):
            if limit is not None and not limit > 0:
                raise ConfigurationError(f"A time limit must be above 0 seconds, got {limit}.")
        self._make_host = make_host
        self._limits = Limits(timeout, start_timeout)
        self._workers: list[Worker] = []

    def seat(self, make_env: MakeEnv) -> WorkerSeat:
        """A seat whose environment is being made."""
        seat = WorkerSeat(self._make_host(partial(_stage, make_env)), self._limits)
        self._workers = [each for each in self._workers if each.alive] + [seat.worker]
        return seat

    def close(self, grace: float = 5.0) -> None:
        """Wait at most `grace` seconds in all for the workers whose seats were closed."""
        until = time.monotonic() + grace
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))


def _stage(make_env: MakeEnv) -> Stage:
    return Stage(make_env())


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
    cloudpickle; whoever plays cannot look into it.

    Args:
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds for starting the process and making the environment; None for no
            limit.
    """

    def __init__(self, timeout: float | None = 120.0, start_timeout: float | None = 600.0) -> None:
        super().__init__(ProcessHost, timeout, start_timeout)
