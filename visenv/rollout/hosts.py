"""Where an environment lives: beside its caller, or in a process of its own.

A host is used by one thread. Only `kill` may come from another: it makes a call return that hangs,
where that can be done at all.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol

from gymnasium.vector.utils import CloudpickleWrapper

from visenv.errors import ConfigurationError
from visenv.types import Failure

_SECONDS_TO_CLOSE = 60.0
"""A child that closes its environment for longer is killed, if nobody has done so before."""

_SECONDS_TO_EXIT = 5.0
"""A child whose end of the pipe is closed is about to exit."""

Make = Callable[[], Any]
"""Makes an environment, or whatever else has methods to be called and is closed in the end."""


class Host(Protocol):
    """One environment, made by `open`."""

    def open(self) -> Failure | None:
        """Make the environment."""
        ...

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the environment; returns its result, or a `Failure`."""
        ...

    def close(self) -> None:
        """Close the environment and release what it runs in."""
        ...

    def kill(self) -> bool:
        """Make a hanging call return; return whether that can be done."""
        ...


def guarded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function returns, or the `Failure` it ends with, whatever it raises."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  a tool's sys.exit() must not end the worker either
        return Failure.of(error)


class LocalHost:
    """An environment in this process. A call that hangs cannot be ended, only left behind.

    Args:
        make: Makes it.

    Attributes:
        env: What was made; None before that.
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
        """Call the environment here."""
        return guarded(getattr(self.env, method), **arguments)

    def close(self) -> None:
        """Close the environment."""
        if self.env is not None:
            guarded(self.env.close)

    def kill(self) -> bool:
        """Return False: a thread cannot be ended from outside."""
        return False


class ProcessHost:
    """An environment in a spawned child.

    Args:
        make: Makes it over there; handed over by cloudpickle, so that a lambda may be used.

    Raises:
        ConfigurationError: If it holds what cannot be pickled.
    """

    def __init__(self, make: Make) -> None:
        from visenv.scorers import for_worker

        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        handed = (CloudpickleWrapper(for_worker(make)), theirs)
        self._process = context.Process(target=_serve, args=handed, daemon=True)
        try:
            self._process.start()
        except Exception as error:  # pickling leads anywhere
            raise ConfigurationError(
                f"What makes the environment cannot be handed to a process: {error}"
            ) from error
        theirs.close()  # so that the child's end closes with the child, which `_receive` notices

    def open(self) -> Failure | None:
        """Wait until the child has made the environment."""
        failure: Failure | None = self._receive()
        return failure

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call the environment over there."""
        try:
            self._pipe.send((method, dict(arguments)))
        except OSError:
            pass  # the child is gone: `_receive` says how
        except Exception as error:  # noqa: BLE001  an option that cannot be pickled
            return Failure.of(error)
        return self._receive()

    def close(self) -> None:
        """Ask the child to close its environment and end; kill it when it does not."""
        guarded(self._pipe.send, None)
        self._process.join(_SECONDS_TO_CLOSE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()
        self._pipe.close()

    def kill(self) -> bool:
        """Kill the child; the call it was in returns a `Failure`."""
        guarded(self._process.kill)  # fails when it is closed already
        return True

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(_SECONDS_TO_EXIT)
            code = self._process.exitcode
            return Failure("worker", "worker", f"the process ended with exit code {code}.")
        except Exception as error:  # noqa: BLE001  a result that cannot be unpickled
            return Failure.of(error)


def _serve(make: Make, pipe: Connection) -> None:
    """The child: make the environment, then answer calls until told to end or left alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches children too; the parent decides
    host = LocalHost(make)
    try:
        pipe.send(host.open())
        while (request := pipe.recv()) is not None:
            unsent = guarded(pipe.send, host.call(*request))
            if isinstance(unsent, Failure):
                pipe.send(unsent)  # a result that cannot be pickled
    except (EOFError, OSError):
        pass  # the parent is gone
    finally:
        host.close()
        # Python's last garbage collection takes 0.2 s for all the modules that were imported, which
        # adds up when many children end. Exit handlers still run.
        gc.freeze()
