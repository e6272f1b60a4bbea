"""Defines a vector environment in which any subset of the environments can be stepped.

`HOSTS` makes the hosts in which its workers run.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, EpisodeOverError, UnknownNameError, VisenvError
from visenv.rollout.hosts import EnvHost, LocalEnvHost, ProcessEnvHost
from visenv.rollout.vector_requests import (
    EnvResult,
    Options,
    ResetRequest,
    Seeds,
    aborted,
    each_seed,
    reset_requests,
)
from visenv.rollout.worker_group import WorkerGroup
from visenv.spaces import Unicode, observation_space
from visenv.terminal import printable_lines
from visenv.types import Failure

_log = logging.getLogger(__name__)
_OPTIONS_OF_MAKE = frozenset({"max_episode_steps", "disable_env_checker"})
"""Arguments of `gym.make` that are not options of the environment."""


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


class SubsetVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """Steps any subset of the environments; the base class of `EpisodePool`, with its arguments."""

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        workers: Literal["thread", "process"] = "thread",
        timeout: float | None = None,
        **kwargs: Any,
    ) -> None:
        if num_envs < 1:
            raise ConfigurationError(f"num_envs must be at least 1, got {num_envs}.")
        if workers not in HOSTS:
            raise UnknownNameError("kind of worker", str(workers), HOSTS)
        self.num_envs = num_envs
        self.timeout = timeout
        self.metadata = {**VisEnv.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = kwargs.get("render_mode")
        self.single_observation_space = observation_space()
        self.single_action_space = Unicode()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = [True] * num_envs
        self._turns = [0] * num_envs
        self._asked: dict[int, str | ResetRequest] = {}
        self._arrived: dict[int, EnvResult | ConfigurationError] = {}
        self.spec = copy.deepcopy(gym.spec(env_id))
        for name in _OPTIONS_OF_MAKE & kwargs.keys():
            setattr(self.spec, name, kwargs.pop(name))
        self.spec.kwargs.update(kwargs)
        self._worker_group = WorkerGroup(num_envs, partial(HOSTS[workers], self.spec))
        self._check(self._worker_group.wait_open())

    # ------------------------------------------------------------------ any subset, asynchronously

    def submit(self, requests: Mapping[int, str | ResetRequest]) -> None:
        """Send turns and resets to some environments, without waiting for the results.

        `ready` returns the results. If one request is invalid, an error is raised and no request is
        sent.

        Args:
            requests: A turn of the policy (a string) or a `ResetRequest`, by index of the
                environment.

        Raises:
            EpisodeOverError: If a turn is for an environment that waits for a reset.
            ConfigurationError: If an index is out of range, or if `ready` has not yet returned the
                last result of the environment.
            TypeError: If a request is neither a string nor a `ResetRequest`.
        """
        for index, request in requests.items():
            self._check_request(index, request)
        for index, request in requests.items():
            self._asked[index] = request
            if isinstance(request, ResetRequest):
                self._worker_group.call(index, "reset", request._asdict(), self.timeout)
            else:
                self._worker_group.call(index, "step", {"action": request}, self.timeout)

    def ready(self, timeout: float | None = None) -> dict[int, EnvResult]:
        """Take the results that have arrived, in no particular order.

        Args:
            timeout: Seconds to wait for the first result; None waits until there is one.

        Returns:
            Results by index of the environment. Empty if no result arrived in time, or if nothing
            was submitted.

        Raises:
            ConfigurationError: If an environment refused its reset options. The next call returns
                the results of the other environments.
        """
        if not self._arrived:
            self._receive(timeout)
        return {index: self._take(index) for index in list(self._arrived)}

    def step_at(self, actions: Mapping[int, str]) -> dict[int, EnvResult]:
        """Step some environments and wait for their results, without waiting for the others.

        Args:
            actions: A turn of the policy, by index.

        Returns:
            Results by index.

        Raises:
            EpisodeOverError, ConfigurationError, TypeError: As in `submit`.
        """
        return self._complete(actions)

    def reset_at(
        self,
        indices: Sequence[int],
        seeds: Seeds = None,
        options: Options = None,
    ) -> dict[int, EnvResult]:
        """Reset some environments and wait for their results.

        Args:
            indices: Indices of the environments.
            seeds: One seed for each environment, or a single seed, with which all of them play the
                same sample (a group).
            options: One mapping for all environments, or one for each.

        Returns:
            Results by index.

        Raises:
            ConfigurationError: As in `submit`, if an environment refuses its options, or if the
                number of seeds or options differs from the number of indices.
        """
        requests = reset_requests(each_seed(seeds, len(indices)), options)
        return self._complete(dict(zip(indices, requests, strict=True)))

    # ------------------------------------------------------------------ inside

    def _check(self, failures: Sequence[Failure]) -> None:
        """Raise the first failure of an environment that could not be made."""
        if not failures:
            return
        self.close()
        if failures[0].source == "configuration":
            raise ConfigurationError(failures[0].reason)
        raise VisenvError(f"An environment of the pool cannot be made: {failures[0]}")

    def _check_request(self, index: int, request: str | ResetRequest) -> None:
        if self.closed:
            raise EpisodeOverError("The pool is closed; create another one with gym.make_vec.")
        if not 0 <= index < self.num_envs:
            raise ConfigurationError(
                f"The index of an environment must be 0 to {self.num_envs - 1}, got {index}."
            )
        if index in self._asked or index in self._arrived:
            raise ConfigurationError(f"Take the result of environment {index} with ready() first.")
        if isinstance(request, ResetRequest):
            return
        if not isinstance(request, str):
            raise TypeError(f"An action must be a string, got {type(request).__name__}.")
        if self._over[index]:
            raise EpisodeOverError(
                f"Environment {index} waits for a reset: its episode is over; call reset_at first."
            )

    def _complete(self, requests: Mapping[int, str | ResetRequest]) -> dict[int, EnvResult]:
        """Submit requests and wait for their results; keep other results for `ready`."""
        self.submit(requests)
        while not requests.keys() <= self._arrived.keys():
            self._receive(None)
        answers = {index: self._arrived.pop(index) for index in requests}
        for answer in answers.values():
            if isinstance(answer, ConfigurationError):
                raise answer
        return {i: answer for i, answer in answers.items() if isinstance(answer, EnvResult)}

    def _take(self, index: int) -> EnvResult:
        answer = self._arrived.pop(index)
        if isinstance(answer, ConfigurationError):
            raise answer
        return answer

    def _receive(self, timeout: float | None) -> None:
        for index, value in self._worker_group.collect(timeout).items():
            self._arrived[index] = self._answer(index, value)

    def _replace(self, index: int, failure: Failure) -> None:
        """Replace the worker of an environment that failed; the episode is lost."""
        detail = f"\n{printable_lines(failure.traceback)}" if failure.traceback else ""
        _log.warning("Environment %d failed and is replaced: %s%s", index, failure, detail)
        self._over[index] = True
        self._worker_group.replace(index)

    def _answer(self, index: int, value: Any) -> EnvResult | ConfigurationError:
        """Convert the value that a worker returned to a result, and update the episode's state."""
        request = self._asked.pop(index)
        starts = isinstance(request, ResetRequest)
        turn = 0 if starts else self._turns[index]
        if isinstance(value, Failure):
            self._over[index] = True
            if not value.environment_is_usable:
                self._replace(index, value)
            if starts and value.source == "configuration":
                return ConfigurationError(value.reason)
            return aborted(turn, value)
        result = EnvResult(value[0], 0.0, False, False, value[1]) if starts else EnvResult(*value)
        self._over[index] = result.over
        self._turns[index] = turn + (not starts)
        return result
