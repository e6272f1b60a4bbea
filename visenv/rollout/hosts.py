"""Defines hosts, which run one environment each: in the caller's process, or in a child process.

A host is used by one thread. Only `kill` may be called from another thread: it ends a call that
hangs, if the host can do that.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol

from gymnasium.vector.utils import CloudpickleWrapper

from visenv.errors import ConfigurationError
from visenv.lasting_output import lasting_output
from visenv.types import Failure

_SECONDS_TO_CLOSE = 60.0
"""Seconds after which a child that is still closing its environment is killed."""

_SECONDS_TO_EXIT = 60.0
"""Seconds to wait for the exit code of a child that has closed its end of the pipe, or was killed.

Only a child that closed its pipe without ending takes so long.
"""

_PAUSE = 0.001
"""Seconds between two looks at the exit code of a child that has ended."""

Make = Callable[[], Any]
"""A function that makes an environment, or another object with methods and `close`."""


class EnvHost(Protocol):
    """Defines a host of one environment, which `open` makes."""

    def open(self) -> Failure | None:
        """Make the environment; return the failure if it cannot be made."""
        ...

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the environment; return its result, or a `Failure`."""
        ...

    def close(self) -> None:
        """Close the environment, and end the process or actor that it runs in."""
        ...

    def kill(self) -> bool:
        """End a call that hangs; return whether the host can do that."""
        ...


def guarded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function; return its result, or a `Failure` for any exception."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  sys.exit() in a tool must not end the worker
        return Failure.of(error)


class LocalEnvHost:
    """Runs its environment in this process; a call that hangs cannot be ended, only abandoned.

    Args:
        make: Makes the environment.

    Attributes:
        env: The environment; None before `open`.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self.env: Any = None

    def open(self) -> Failure | None:
        """Make the environment."""
        made = guarded(self._make)
        if isinstance(made, Failure):
            return made
        self.env = made
        return None

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the environment in this process."""
        return guarded(getattr(self.env, method), **arguments)

    def close(self) -> None:
        """Close the environment."""
        if self.env is not None:
            guarded(self.env.close)

    def kill(self) -> bool:
        """Return False: a thread cannot be ended from outside."""
        return False


class ProcessEnvHost:
    """Runs its environment in a child process that is started by spawn.

    Args:
        make: Makes the environment in the child. It is sent by cloudpickle, so it can be a lambda.

    Raises:
        ConfigurationError: If `make` refers to an object that cannot be pickled.
    """

    def __init__(self, make: Make) -> None:
        from visenv.scorers import for_worker

        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        handed = (CloudpickleWrapper(for_worker(make)), theirs)
        self._process = context.Process(target=_serve, args=handed, daemon=True)
        try:
            self._process.start()
        except Exception as error:  # pickling runs the code of any object
            raise ConfigurationError(
                f"The function that makes the environment cannot be sent to a process: {error}"
            ) from error
        # Only the child keeps its end of the pipe open, so `_receive` notices when the child ends.
        theirs.close()

    def open(self) -> Failure | None:
        """Wait until the child has made the environment."""
        failure: Failure | None = self._receive()
        return failure

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the environment in the child."""
        try:
            self._pipe.send((method, dict(arguments)))
        except OSError:
            pass  # the child has ended: `_receive` returns the failure
        except Exception as error:  # noqa: BLE001  an option that cannot be pickled
            return Failure.of(error)
        return self._receive()

    def close(self) -> None:
        """Ask the child to close its environment and to end; kill the child if it does not."""
        guarded(self._pipe.send, None)
        if self._exit_code(_SECONDS_TO_CLOSE) is None:
            self._process.kill()
            self._exit_code(_SECONDS_TO_EXIT)
        self._process.close()
        self._pipe.close()

    def kill(self) -> bool:
        """Kill the child; a call that is running returns a `Failure`."""
        guarded(self._process.kill)  # raises if the process is closed already
        return True

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            code = self._exit_code(_SECONDS_TO_EXIT)
            return Failure("worker", "worker", f"the process ended with exit code {code}.")
        except Exception as error:  # noqa: BLE001  a result that cannot be unpickled
            return Failure.of(error)

    def _exit_code(self, seconds: float) -> int | None:
        """Wait until the child has ended; return its exit code, or None after the time limit.

        The start of any process collects the children that have ended. If another thread starts a
        process now, `Process.join` may return before that thread has stored the exit code.
        """
        until = time.monotonic() + seconds
        while self._process.exitcode is None and (left := until - time.monotonic()) > 0:
            self._process.join(left)
            if self._process.exitcode is None:
                time.sleep(_PAUSE)
        return self._process.exitcode


def _serve(make: Make, pipe: Connection) -> None:
    """Run in the child: make the environment; answer calls until the parent ends or sends None."""
    # A terminal or a scheduler sends these signals to the child too; the parent handles them.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    host = LocalEnvHost(make)
    with lasting_output(report=False):  # the parent reports an output that is closed
        try:
            pipe.send(host.open())
            while (request := pipe.recv()) is not None:
                unsent = guarded(pipe.send, host.call(*request))
                if isinstance(unsent, Failure):
                    pipe.send(unsent)  # a result that cannot be pickled
        except (EOFError, OSError):
            pass  # the parent has ended
        finally:
            host.close()
            # Python's last garbage collection takes 0.2 s, because many modules are imported. Skip
            # it, because many children may end at the same time. Exit handlers still run.
            gc.freeze()
