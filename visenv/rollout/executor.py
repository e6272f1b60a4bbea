"""Executors decide where environments run; this one runs them in the process of the caller."""

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
"""Steps of environments with asynchronous tools that wait at the same time."""


class EnvFailedError(VisenvError):
    """Raised by a slot whose environment gave no result; never reaches a caller of `Collector`.

    Args:
        failure: The failure.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class EnvSlot(Protocol):
    """One environment, wherever it runs; it plays one episode at a time.

    Attributes:
        usable: Whether it can be called: not during a call, and not after it has failed.
        begun: Whether an episode has begun in it; set by the player.
        made: Whether the environment is made, or could not be made: `open` does not wait.
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
            EnvFailedError: If it cannot be made.
            ConfigurationError: If its options are wrong.
        """
        ...

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of its `EnvAdapter`.

        Raises:
            EnvFailedError: If it raised, took too long, or died.
            VisenvError: An error that the environment raised on purpose, if it runs in this
                process.
        """
        ...

    def close(self) -> None:
        """Close the environment, or abandon it if it is not usable; returns at once."""
        ...


class Executor(Protocol):
    """Makes slots.

    Attributes:
        crowded: Whether an environment may not be made until another one is closed.
    """

    crowded: bool

    def slot(self, make_env: MakeEnv) -> EnvSlot:
        """Return a slot with an environment of its own."""
        ...

    def close(self) -> None:
        """Wait a little for what closed slots are still doing."""
        ...


class InlineSlot:
    """An environment that is called on the event loop.

    A step blocks the loop, unless it may wait for an asynchronous tool and `threads` are given:
    then it runs in one of them, and other episodes go on.

    Args:
        adapter: The environment.
        isolate: Whether an unexpected exception fails the call, with a warning in the log, instead
            of being raised. visenv's own errors are always raised.
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
        """Call the environment."""
        try:
            if method == "finish":
                return await wait(self._adapter.submit_finish())
            call = partial(getattr(self._adapter, method), **arguments)
            if self._threads is None:
                return call()
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except VisenvError:
            raise
        except (Exception, SystemExit) as error:  # a tool's sys.exit() must not end the run
            if not self._isolate:
                raise
            self.usable = False
            _log.warning("An environment failed and is replaced.", exc_info=error)
            raise EnvFailedError(Failure.of(error)) from error

    def close(self) -> None:
        """Close the environment; what a failed one raises then is ignored."""
        if self.usable:
            self._adapter.close()
        else:
            guarded(self._adapter.close)


class InlineExecutor:
    """Runs environments in the process of the caller, on its event loop.

    Args:
        threads: Whether a step that waits for an asynchronous tool runs in a thread, while other
            episodes go on. Without threads the order of everything is the same in every run.
    """

    crowded = False

    def __init__(self, *, threads: bool = True) -> None:
        self._threads = ThreadPoolExecutor(_MAX_THREADS, "visenv-step") if threads else None

    def slot(self, make_env: MakeEnv) -> InlineSlot:
        """Return a slot with a new environment."""
        return InlineSlot(EnvAdapter(make_env()), threads=self._threads)

    def close(self) -> None:
        """End the threads; a step that still waits is left behind."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
