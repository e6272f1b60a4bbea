"""Defines the hosts in which the workers of an `EpisodePool` run their environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.rollout.hosts import EnvHost, LocalEnvHost, ProcessEnvHost


class PooledEnv(gym.Wrapper[Observation, str, Observation, str]):
    """Wraps an environment of a pool, and adds the method that `EpisodePool.call` uses."""

    def call_attr(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return an attribute of the environment, or the result of calling it if it is a method."""
        found = self.env.get_wrapper_attr(name)
        return found(*args, **kwargs) if callable(found) else found


def _in_thread(spec: EnvSpec) -> EnvHost:
    return LocalEnvHost(partial(_make, spec))


def _in_process(spec: EnvSpec) -> EnvHost:
    """Return a host in a child process, which builds the environment from the JSON of its spec."""
    try:
        description = spec.to_json()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"workers='process' sends the options of {spec.id} as JSON, and one of them cannot be "
            f"converted to JSON: {error} Use workers='thread' instead."
        ) from error
    return ProcessEnvHost(partial(_rebuild, description))


def _make(spec: EnvSpec) -> PooledEnv:
    return PooledEnv(gym.make(spec))


def _rebuild(description: str) -> PooledEnv:
    return _make(EnvSpec.from_json(description))


HOSTS: dict[str, Callable[[EnvSpec], EnvHost]] = {"thread": _in_thread, "process": _in_process}
"""For each kind of worker, a function that makes its host from the spec of the environment."""
