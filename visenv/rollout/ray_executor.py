"""Environments on any machine of a Ray cluster, each an actor of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from typing_extensions import override

from visenv.rollout.adapter import EnvAdapter
from visenv.rollout.hosts import LocalHost, guarded
from visenv.rollout.worker_executors import WorkerExecutor
from visenv.scorers import for_worker
from visenv.types import Failure, Image, StepResult

_SECONDS_TO_CLOSE = 5.0


def connect() -> None:
    """Connect to the cluster that ``RAY_ADDRESS`` names, or start one here, unless connected."""
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)


class RayExecutor(WorkerExecutor):
    """Environments as Ray actors, placed on whatever machine has room.

    By the code path of threads and processes: an actor that hangs is killed, one whose machine is
    lost is noticed, and both are replaced. What makes an environment is sent there by cloudpickle,
    so visenv and the data it names must be on every machine. Where no cluster is connected, the
    one that ``RAY_ADDRESS`` names is, or one is started here.

    More episodes may be in flight than the cluster has room for: each takes the environment that is
    available first, an idle one or a new one.

    Args:
        timeout: Seconds for a reset or a step; None for no limit.
        start_timeout: Seconds until the actor has found a place and made its environment; None for
            no limit.
        **options: Of each actor, as in Ray's ``options``: ``num_cpus=1``, ``resources=…``.
    """

    crowded = True

    def __init__(
        self,
        timeout: float | None = 120.0,
        start_timeout: float | None = 600.0,
        **options: Any,
    ) -> None:
        connect()

        def host(make: Callable[[], EnvAdapter]) -> RayHost:
            return RayHost(make, options)

        super().__init__(host, timeout, start_timeout)


class RayHost:
    """An environment in an actor.

    Args:
        make: Makes it over there.
        options: Of the actor.
    """

    def __init__(self, make: Callable[[], EnvAdapter], options: Mapping[str, Any]) -> None:
        self._actor: Any = ray.remote(_FarHost).options(**options).remote(for_worker(make))

    def open(self) -> Failure | None:
        """Wait until the actor has made the environment."""
        failure: Failure | None = _result(self._actor.open.remote())
        return failure

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call the environment over there."""
        return _result(self._actor.call.remote(method, dict(arguments)))

    def close(self) -> None:
        """Close the environment, and end the actor."""
        guarded(ray.get, self._actor.close.remote(), timeout=_SECONDS_TO_CLOSE)
        self.kill()

    def kill(self) -> bool:
        """Kill the actor; the call it was in returns a `Failure`."""
        guarded(ray.kill, self._actor)
        return True


class _FarHost(LocalHost):
    """What the actor is; images that lie in files of its machine leave it as bytes."""

    @override
    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        value = super().call(method, arguments)
        return guarded(_sendable, value)


def _sendable(value: Any) -> Any:
    """Return the answer of an `EnvAdapter` without images that lie in files of this machine."""
    if isinstance(value, StepResult):
        messages = tuple(message.in_memory() for message in value.messages)
        hidden = tuple(video.replace_frames(Image.in_memory) for video in value.hidden_frames)
        return value._replace(messages=messages, hidden_frames=hidden)
    if type(value) is tuple:  # what `EnvAdapter.begin` returns
        return tuple(map(_sendable, value))
    return value


def _result(reference: Any) -> Any:
    """What an actor answered, or the `Failure` that kept it from answering."""
    try:
        return ray.get(reference)
    except RayActorError as error:
        return Failure("worker", "worker", f"the actor is gone: {first_line(error)}")
    except RayError as error:
        return Failure.of(error)


def first_line(error: Exception) -> str:
    """What Ray says, without the pages that follow."""
    return next(iter(str(error).splitlines()), "")
