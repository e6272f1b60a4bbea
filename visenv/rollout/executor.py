"""Executor: decides where environments run. `InlineExecutor` runs them in the caller's process."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from visenv.background import wait
from visenv.errors import VisenvError
from visenv.rollout.adapter import EnvAdapter, MakeEnv
from visenv.rollout.hosts import guarded
from visenv.types import Failure

_log = logging.getLogger(__name__)

_MAX_THREADS = 256
"""Maximum number of steps with asynchronous tools that wait at the same time."""


class EnvFailedError(VisenvError):
    """A slot raises this error if its environment gave no result; `Collector` handles it.

    Args:
        failure: The failure.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class EnvSlot(Protocol):
    """One environment, in any process or on any machine; it plays one episode at a time.

    Attributes:
        usable: Whether the environment can be called; False during a call and after a failure.
        begun: Whether an episode has begun in the environment; the player sets it.
        made: Whether `open` returns at once, because the environment is made or could not be made.
    """

    usable: bool
    begun: bool

    @property
    def made(self) -> bool:
        """See above."""
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
            VisenvError: If the environment runs in this process and raised this error on purpose.
        """
        ...

    def close(self) -> None:
        """Close the environment, or abandon it if it is not usable; returns at once."""
        ...


class Executor(Protocol):
    """Makes slots, each with one environment.

    Attributes:
        crowded: Whether room is limited, so that a new environment may have to wait until another
            one is closed.
    """

    crowded: bool

    def slot(self, make_env: MakeEnv) -> EnvSlot:
        """Return a slot with a new environment."""
        ...

    def close(self) -> None:
        """Wait for a limited time until the calls in closed slots have ended."""
        ...


class InlineSlot:
    """A slot whose environment is called on the event loop.

    A step blocks the event loop, with one exception: if the environment may wait for an
    asynchronous tool and `threads` are given, the step runs in a thread while others continue.

    Args:
        adapter: The environment.
        isolate: Whether an unexpected exception is logged as a warning and raised as an
            `EnvFailedError`. If False, it is raised unchanged. Errors of visenv are always raised
            unchanged.
        threads: Threads for steps that wait.
    """

    def __init__(
        self,
        adapter: EnvAdapter,
        isolate: bool = True,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        self.usable = True
        self.begun = False
        self._adapter = adapter
        self._isolate = isolate
        self._threads = threads if adapter.waits else None

    @property
    def made(self) -> bool:
        """Return True: the environment exists."""
        return True

    async def open(self) -> None:
        """Return at once."""

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the `EnvAdapter`; `finish` waits without blocking the event loop."""
        try:
            if method == "finish":
                return await wait(self._adapter.submit_finish())
            call = partial(getattr(self._adapter, method), **arguments)
            if self._threads is None:
                return call()
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except VisenvError:
            raise
        except (Exception, SystemExit) as error:  # sys.exit() in a tool must not end the run
            if not self._isolate:
                raise
            self.usable = False
            _log.warning("An environment failed and is replaced.", exc_info=error)
            raise EnvFailedError(Failure.of(error)) from error

    def close(self) -> None:
        """Close the environment; exceptions of an environment that failed before are ignored."""
        if self.usable:
            self._adapter.close()
        else:
            guarded(self._adapter.close)


class InlineExecutor:
    """Runs environments in the process of the caller, on its event loop.

    Args:
        threads: Whether a step that may wait for an asynchronous tool runs in a thread, so that
            other episodes continue. Without threads, all steps have the same order in every run.
    """

    crowded = False

    def __init__(self, *, threads: bool = True) -> None:
        self._threads = ThreadPoolExecutor(_MAX_THREADS, "visenv-step") if threads else None

    def slot(self, make_env: MakeEnv) -> InlineSlot:
        """Return a slot with a new environment."""
        return InlineSlot(EnvAdapter(make_env()), threads=self._threads)

    def close(self) -> None:
        """End the threads; a step that still waits is abandoned."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
