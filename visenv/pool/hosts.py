"""Where an environment of the pool lives: beside its caller, or in a process of its own.

A host is used by one thread. Only `kill` may come from another: it makes a call return that hangs,
where that can be done at all.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from visenv.errors import ConfigurationError
from visenv.pool.failure import Failure

_SECONDS_TO_CLOSE = 5.0


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

    def kill(self) -> None:
        """Make a hanging call return, if that can be done."""
        ...


def guarded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function returns, or the `Failure` it ends with, whatever it raises."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  a tool's sys.exit() must not end the worker either
        return Failure.of(error)


class LocalHost:
    """An environment in this process. A call that hangs cannot be ended, only left behind."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec
        self._env: gym.Env[Any, Any] | None = None

    def open(self) -> Failure | None:
        """Make the environment."""
        made = guarded(gym.make, self._spec)
        if isinstance(made, Failure):
            return made
        self._env = made
        return None

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call the environment here."""
        return guarded(getattr(self._env, method), **arguments)

    def close(self) -> None:
        """Close the environment."""
        if self._env is not None:
            guarded(self._env.close)

    def kill(self) -> None:
        """A thread cannot be ended from outside."""


class ProcessHost:
    """An environment in a spawned child, which rebuilds it from its spec's JSON.

    Args:
        spec: What to make; every option must be JSON.

    Raises:
        ConfigurationError: If an option is not.
    """

    def __init__(self, spec: EnvSpec) -> None:
        try:
            description = spec.to_json()
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"A process rebuilds {spec.id} from JSON, and an option is not JSON: {error} "
                "Use workers='thread'."
            ) from error
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(description, theirs), daemon=True)
        self._process.start()
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

    def kill(self) -> None:
        """Kill the child; the call it was in returns a `Failure`."""
        guarded(self._process.kill)  # fails when it is closed already

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(_SECONDS_TO_CLOSE)
            code = self._process.exitcode
            return Failure("worker", f"the process ended with exit code {code}.")
        except Exception as error:  # noqa: BLE001  a result that cannot be unpickled
            return Failure.of(error)


def _serve(description: str, pipe: Connection) -> None:
    """The child: make the environment, then answer calls until told to end or left alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches children too; the parent decides
    host = LocalHost(EnvSpec.from_json(description))
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
