"""Where environments run: the contract of executors, and the one that runs them here."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from visenv.errors import VisenvError
from visenv.pool.failure import Failure
from visenv.pool.hosts import guarded
from visenv.rollout.stage import Env, MakeEnv, Stage

_log = logging.getLogger(__name__)


class EnvFailedError(VisenvError):
    """Raised by a seat whose environment gave no result; never reaches a caller of `Collector`.

    Args:
        failure: What happened.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Seat(Protocol):
    """One environment, wherever it is; one episode at a time.

    Attributes:
        usable: Whether it can be called: not while a call is going on, nor once it has failed.
        begun: Whether an episode has begun in it; said by whoever plays.
    """

    usable: bool
    begun: bool

    async def open(self) -> Env:
        """Wait until the environment is made; what a policy is shown of it.

        Raises:
            EnvFailedError: If it cannot be made.
            ConfigurationError: If its options are wrong.
        """
        ...

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of its `Stage`.

        Raises:
            EnvFailedError: If it raised, took too long, or died.
            VisenvError: What the environment raised on purpose, where it runs in this process.
        """
        ...

    def close(self) -> None:
        """Close the environment, or leave it behind if it is not usable; returns at once."""
        ...


class Executor(Protocol):
    """Makes seats."""

    def seat(self, make_env: MakeEnv) -> Seat:
        """A seat with an environment of its own."""
        ...

    def close(self) -> None:
        """Wait a little for what seats that were closed are still doing."""
        ...


class InlineSeat:
    """An environment that is called here and now, blocking the event loop.

    Args:
        stage: The environment.
        isolate: Whether an exception fails the call, with a warning in the log, instead of being
            raised. visenv's own errors are always raised.
    """

    def __init__(self, stage: Stage, isolate: bool = True) -> None:
        self.usable = True
        self.begun = False
        self._stage = stage
        self._isolate = isolate

    async def open(self) -> Env:
        """The environment itself."""
        return self._stage.env

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call it, without giving way to anybody else."""
        try:
            return getattr(self._stage, method)(**arguments)
        except VisenvError:
            raise
        except (Exception, SystemExit) as error:  # a tool's sys.exit() must not end the run
            if not self._isolate:
                raise
            self.usable = False
            _log.warning("An environment failed and is replaced.", exc_info=error)
            raise EnvFailedError(Failure.of(error)) from error

    def close(self) -> None:
        """Close it; a failed one may raise then, which is of no interest."""
        if self.usable:
            self._stage.close()
        else:
            guarded(self._stage.close)


class InlineExecutor:
    """Environments on the event loop: the same order of everything in every run."""

    def seat(self, make_env: MakeEnv) -> InlineSeat:
        """A seat with a new environment."""
        return InlineSeat(Stage(make_env()))

    def close(self) -> None:
        """Nothing is left to wait for."""
