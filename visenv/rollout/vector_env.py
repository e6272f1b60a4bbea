"""EpisodePool: the vector environment of every visenv id, without lock step.

A language model takes seconds for a turn and a tool takes what it takes, so no environment may wait
for another: any subset can be stepped, results are taken as they come, and whatever goes wrong in
one environment (an exception, a call without end, a dead process) ends that one episode only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, EpisodeOverError, UnknownNameError, VisenvError
from visenv.rollout.hosts import Host, LocalHost, ProcessHost
from visenv.rollout.vector_result import Reset, Result, aborted, nothing_new
from visenv.rollout.worker_group import WorkerGroup
from visenv.seeding import seeds
from visenv.spaces import Unicode, observation_space
from visenv.types import Failure


def _in_thread(spec: EnvSpec) -> Host:
    return LocalHost(partial(gym.make, spec))


def _in_process(spec: EnvSpec) -> Host:
    """A host in a process, which rebuilds the environment from its spec's JSON."""
    try:
        description = spec.to_json()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"A process rebuilds {spec.id} from JSON, and an option is not JSON: {error} "
            "Use workers='thread'."
        ) from error
    return ProcessHost(partial(_rebuild, description))


def _rebuild(description: str) -> gym.Env[Any, Any]:
    return gym.make(EnvSpec.from_json(description))


_HOSTS: dict[str, Callable[[EnvSpec], Host]] = {"thread": _in_thread, "process": _in_process}

Batch = dict[str, tuple[Any, ...]]
"""``{"text": (str, …), "images": ((uint8 [H, W, 3], …), …)}``, one entry per environment."""

StepBatch = tuple[Batch, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class EpisodePool(gym.vector.VectorEnv[Any, Any, Any]):
    """`num_envs` environments, each with a worker of its own.

    Autoreset is DISABLED: an environment whose episode has ended waits for a reset, because any
    automatic one would throw a generated turn away or start a sample nobody chose. Meanwhile it is
    left out: of `step_at` and `submit` by not naming it, of `step` by passing None in its place.

    An environment that raises, takes longer than `timeout` or dies gives an aborted step
    (truncated, reward 0.0, the reason in ``info["aborted"]``, an `Aborted` event) and is replaced
    by a fresh one; a late reply is dropped. visenv's own errors (a row that cannot be read) abort
    the episode too and leave the environment in place. Use a pool from one thread.

    Args:
        env_id: A registered id.
        num_envs: Number of environments.
        workers: ``"thread"`` shares this process's memory (loaded data, model servers) and its
            interpreter lock; a call that hangs is left behind. ``"process"`` rebuilds the
            environment from its spec's JSON in a spawned child, which is killed when it hangs.
        timeout: Seconds for one call, None for no limit; may be changed between calls.
        **kwargs: Options of the environment, as for `gym.make`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        VisenvError: If an environment cannot be made.
    """

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
            raise ConfigurationError(f"A pool needs at least 1 environment, got {num_envs}.")
        if workers not in _HOSTS:
            raise UnknownNameError("kind of worker", str(workers), _HOSTS)
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
        self._asked: dict[int, str | Reset] = {}
        self._arrived: dict[int, Result | ConfigurationError] = {}
        self.spec = copy.deepcopy(gym.spec(env_id))
        self.spec.kwargs.update(kwargs)
        self._worker_group = WorkerGroup(num_envs, partial(_HOSTS[workers], self.spec))
        self._check(self._worker_group.wait_open())

    # ------------------------------------------------------------------ any subset, no lock step

    def submit(self, requests: Mapping[int, str | Reset]) -> None:
        """Send turns and resets to some environments and return at once; `ready` has the results.

        Raises:
            EpisodeOverError: If a turn is for an environment that waits for a reset.
            ConfigurationError: If an index is out of range, or its last result was not taken yet.
            TypeError: If a request is neither a string nor a `Reset`.

        In these cases nothing is sent.
        """
        for index, request in requests.items():
            self._check_request(index, request)
        for index, request in requests.items():
            self._asked[index] = request
            if isinstance(request, Reset):
                self._worker_group.call(index, "reset", request._asdict(), self.timeout)
            else:
                self._worker_group.call(index, "step", {"action": request}, self.timeout)

    def ready(self, timeout: float | None = None) -> dict[int, Result]:
        """Take the results that have come, in no particular order.

        Args:
            timeout: Seconds to wait for the first result; None waits until there is one.

        Returns:
            Results by index; empty when none came in time or nothing was submitted.

        Raises:
            ConfigurationError: If an environment refused its reset options; the results of the
                others stay for the next call.
        """
        if not self._arrived:
            self._receive(timeout)
        return {index: self._take(index) for index in list(self._arrived)}

    def step_at(self, actions: Mapping[int, str]) -> dict[int, Result]:
        """Step some environments and wait for these, whatever the others are doing.

        Raises:
            EpisodeOverError, ConfigurationError, TypeError: As `submit`.
        """
        return self._complete(actions)

    def reset_at(
        self,
        indices: Sequence[int],
        seeds: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> dict[int, Result]:
        """Reset some environments and wait for these.

        Args:
            indices: Which ones.
            seeds: One for each; a single one gives each the same task, a group.
            options: One for each, or one for all.

        Raises:
            ConfigurationError: As `submit`, or if an environment refuses its options.
        """
        count = len(indices)
        each_seed = seeds if isinstance(seeds, Sequence) else [seeds] * count
        return self._complete(dict(zip(indices, _resets(count, each_seed, options), strict=True)))

    # ------------------------------------------------------------------ Gymnasium's vector API

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Any = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all environments.

        Args:
            seed: A seed for each, ``[s] * num_envs`` being one group; or one from which unrelated
                seeds are derived (`numpy.random.SeedSequence`; not ``seed + i``, which would let
                neighbouring seeds share tasks).
            options: The options of `VisEnv.reset`, one mapping for all or one for each. With
                Gymnasium's ``"reset_mask"``, bool ``[num_envs]``, only those are reset.

        Raises:
            ConfigurationError: If an environment refuses its options.
        """
        if not isinstance(seed, Sequence):
            seed = _spread(seed, self.num_envs)
        chosen = range(self.num_envs)
        if isinstance(options, Mapping) and "reset_mask" in options:
            chosen = np.flatnonzero(options["reset_mask"]).tolist()
            options = {name: value for name, value in options.items() if name != "reset_mask"}
        resets = _resets(self.num_envs, seed, options)
        observation, _, _, _, infos = self._batch(
            self._complete({index: resets[index] for index in chosen})
        )
        return observation, infos

    def step(self, actions: Sequence[str | None]) -> StepBatch:
        """Step all environments, or with None in their place leave some as they are.

        Returns:
            Batched observations, rewards float64, terminations and truncations bool, each
            ``[num_envs]``, and infos. One that was left out shows nothing new, reward 0, neither
            flag, and no info.

        Raises:
            EpisodeOverError: If an action is for an environment that waits for a reset.
        """
        if len(actions) != self.num_envs:
            raise ConfigurationError(f"Expected {self.num_envs} actions, got {len(actions)}.")
        given = {index: action for index, action in enumerate(actions) if action is not None}
        return self._batch(self._complete(given))

    def render(self) -> tuple[Any, ...]:
        """What each environment renders; None for one that fails to.

        Raises:
            ConfigurationError: If results are still to be taken.
        """
        for index in range(self.num_envs):
            self._check_request(index, Reset())
        for index in range(self.num_envs):
            self._worker_group.call(index, "render", {}, self.timeout)
        frames: dict[int, Any] = {}
        while self._worker_group.busy:
            frames |= self._worker_group.collect(None)
        return tuple(self._frame(index, frames[index]) for index in range(self.num_envs))

    def close_extras(self, grace: float = 5.0, **kwargs: Any) -> None:
        """End all workers, at most `grace` seconds for those that hang."""
        self._worker_group.close(grace)

    # ------------------------------------------------------------------ inside

    def _check(self, failures: Sequence[Failure]) -> None:
        """Raise what kept an environment from being made."""
        if not failures:
            return
        self.close()
        if failures[0].source == "configuration":
            raise ConfigurationError(failures[0].reason)
        raise VisenvError(f"An environment of the pool cannot be made: {failures[0]}")

    def _check_request(self, index: int, request: str | Reset) -> None:
        if self.closed:
            raise EpisodeOverError("The pool is closed.")
        if not 0 <= index < self.num_envs:
            raise ConfigurationError(
                f"Environments are numbered 0 to {self.num_envs - 1}, got {index}."
            )
        if index in self._asked or index in self._arrived:
            raise ConfigurationError(f"Take the result of environment {index} with ready() first.")
        if isinstance(request, Reset):
            return
        if not isinstance(request, str):
            raise TypeError(f"An action is a string, got {type(request).__name__}.")
        if self._over[index]:
            raise EpisodeOverError(f"Environment {index} waits for a reset.")

    def _complete(self, requests: Mapping[int, str | Reset]) -> dict[int, Result]:
        """Submit, and wait for these; what others answer meanwhile is kept for `ready`."""
        self.submit(requests)
        while not requests.keys() <= self._arrived.keys():
            self._receive(None)
        answers = {index: self._arrived.pop(index) for index in requests}
        for answer in answers.values():
            if isinstance(answer, ConfigurationError):
                raise answer
        return {i: answer for i, answer in answers.items() if isinstance(answer, Result)}

    def _take(self, index: int) -> Result:
        answer = self._arrived.pop(index)
        if isinstance(answer, ConfigurationError):
            raise answer
        return answer

    def _receive(self, timeout: float | None) -> None:
        for index, value in self._worker_group.collect(timeout).items():
            self._arrived[index] = self._answer(index, value)

    def _answer(self, index: int, value: Any) -> Result | ConfigurationError:
        """Make a result of what a worker answered, and keep count of the episode."""
        request = self._asked.pop(index)
        starts = isinstance(request, Reset)
        turn = 0 if starts else self._turns[index]
        if isinstance(value, Failure):
            self._over[index] = True
            if not value.environment_is_usable:
                self._worker_group.replace(index)
            if starts and value.source == "configuration":
                return ConfigurationError(value.reason)
            return aborted(turn, value)
        result = Result(value[0], 0.0, False, False, value[1]) if starts else Result(*value)
        self._over[index] = result.over
        self._turns[index] = turn + (not starts)
        return result

    def _frame(self, index: int, value: Any) -> Any:
        if not isinstance(value, Failure):
            return value
        self._over[index] = True
        self._worker_group.replace(index)
        return None

    def _batch(self, results: Mapping[int, Result]) -> StepBatch:
        shown: list[Observation] = [nothing_new()] * self.num_envs
        rewards = np.zeros(self.num_envs, np.float64)
        terminations = np.zeros(self.num_envs, np.bool_)
        truncations = np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        for index, result in sorted(results.items()):
            shown[index] = result.observation
            rewards[index] = result.reward
            terminations[index] = result.terminated
            truncations[index] = result.truncated
            infos = self._add_info(infos, result.info, index)
        observation: Batch = {
            "images": tuple(each["images"] for each in shown),
            "text": tuple(each["text"] for each in shown),
        }
        return observation, rewards, terminations, truncations, infos


def _spread(seed: int | None, count: int) -> Sequence[int | None]:
    if seed is None:
        return [None] * count
    return seeds(np.random.SeedSequence(seed), count)


def _resets(
    count: int,
    seeds: Sequence[int | None],
    options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None,
) -> list[Reset]:
    each = options if isinstance(options, Sequence) else [options] * count
    if len(seeds) != count or len(each) != count:
        raise ConfigurationError(
            f"{count} environments need {count} seeds and options, "
            f"got {len(seeds)} seeds and {len(each)} options."
        )
    return [Reset(seed, dict(option or {})) for seed, option in zip(seeds, each, strict=True)]
