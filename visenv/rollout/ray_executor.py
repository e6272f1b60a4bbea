"""Runs environments on any machine of a Ray cluster.

`connect` connects to a cluster, or starts one on this machine.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from typing_extensions import override

from visenv.rollout.adapter import EnvAdapter
from visenv.rollout.hosts import LocalEnvHost, guarded
from visenv.rollout.worker_executors import WorkerExecutor
from visenv.scorers import for_worker
from visenv.socket_folder import socket_folder
from visenv.types import Failure, Image, StepResult

_TOKEN_BYTES = 32
_SECONDS_TO_REMOVE = 30.0
_PAUSE = 0.05
_FOLDER = "ray"
_NAME_BYTES = len(f"{_FOLDER}/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store")
_log = logging.getLogger(__name__)

_SECONDS_TO_CLOSE = 5.0


def connect() -> None:
    """Connect to the cluster of ``RAY_ADDRESS``, or start one here, unless already connected.

    A cluster that is started here demands a random token (Ray's token authentication). Its sockets
    and logs are in a folder that only this user can enter, because every user of the machine can
    change Ray's own folder, ``/tmp/ray``. A warning is logged if a cluster demands no token.
    """
    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(include_dashboard=False, log_to_driver=False)
    else:
        _start()
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        _log.warning(
            "The Ray cluster demands no token. Everyone who can reach it can run code as its user. "
            "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN on all machines before `ray start`, as "
            "docs/training.md shows."
        )


def _start() -> None:
    """Start a cluster of this machine; Ray turns token authentication on if the mode is not set."""
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        # Otherwise Ray would save a token in the home folder, in a file that others may read.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
    folder = socket_folder("visenv-ray-", _NAME_BYTES)
    # Exit handlers run in reverse order, and Ray's processes must end before their folder.
    atexit.register(_remove, folder)
    atexit.register(ray.shutdown)
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=str(folder / _FOLDER),  # Ray gives all users access to this folder itself
    )


def _remove(folder: Path) -> None:
    """Remove the folder of a cluster whose processes may still write to it while they end."""
    until = time.monotonic() + _SECONDS_TO_REMOVE
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)  # fails if a file appears meanwhile
        if folder.exists():
            time.sleep(_PAUSE)


class RayExecutor(WorkerExecutor):
    """Runs environments as Ray actors, on any machine that has room.

    Your environments need no other code than for threads and processes. An actor that hangs is
    killed, and the loss of a machine is detected. In both cases the environment is replaced. The
    function that makes an environment is sent by cloudpickle, so visenv and the data must be
    installed on every machine. If Ray is not connected, the executor connects to the cluster of
    ``RAY_ADDRESS``, or starts a cluster on this machine.

    The number of episodes in flight may be larger than the number of environments that the cluster
    has room for. Each episode takes the environment that is available first: one that becomes idle,
    or a new one.

    Args:
        timeout: Time limit of a reset or a step, in seconds; None sets no limit.
        start_timeout: Time limit until Ray has placed the actor and the actor has made its
            environment, in seconds; None sets no limit.
        **options: Options of each actor, as in Ray's ``options``, for example ``num_cpus=1``.
    """

    crowded = True

    def __init__(
        self,
        timeout: float | None = 120.0,
        start_timeout: float | None = 600.0,
        **options: Any,
    ) -> None:
        connect()

        def host(make: Callable[[], EnvAdapter]) -> RayEnvHost:
            return RayEnvHost(make, options)

        super().__init__(host, timeout, start_timeout)


class RayEnvHost:
    """Runs its environment in a Ray actor.

    Args:
        make: Makes the environment in the actor.
        options: Options of the actor.
    """

    def __init__(self, make: Callable[[], EnvAdapter], options: Mapping[str, Any]) -> None:
        self._actor: Any = ray.remote(_FarHost).options(**options).remote(for_worker(make))

    def open(self) -> Failure | None:
        """Wait until the actor has made the environment."""
        failure: Failure | None = _result(self._actor.open.remote())
        return failure

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the environment in the actor."""
        return _result(self._actor.call.remote(method, dict(arguments)))

    def close(self) -> None:
        """Close the environment and end the actor."""
        guarded(ray.get, self._actor.close.remote(), timeout=_SECONDS_TO_CLOSE)
        self.kill()

    def kill(self) -> bool:
        """Kill the actor; a call that is running returns a `Failure`."""
        guarded(ray.kill, self._actor)
        return True


class _FarHost(LocalEnvHost):
    """Implements the actor; sends images that are files on its machine as bytes."""

    @override
    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        value = super().call(method, arguments)
        return guarded(_sendable, value)


def _sendable(value: Any) -> Any:
    """Return the result of an `EnvAdapter`, with image files of this machine replaced by bytes."""
    if isinstance(value, StepResult):
        messages = tuple(message.in_memory() for message in value.messages)
        hidden = tuple(video.replace_frames(Image.in_memory) for video in value.hidden_frames)
        return value._replace(messages=messages, hidden_frames=hidden)
    if type(value) is tuple:  # the result of `EnvAdapter.begin`
        return tuple(map(_sendable, value))
    return value


def _result(reference: Any) -> Any:
    """Wait for the result of an actor; return it, or a `Failure` if there is none."""
    try:
        return ray.get(reference)
    except RayActorError as error:
        return Failure("worker", "worker", f"the actor has ended: {first_line(error)}")
    except RayError as error:
        return Failure.of(error)


def first_line(error: Exception) -> str:
    """Return the first line of an error of Ray, without the long explanation that follows."""
    return next(iter(str(error).splitlines()), "")
