"""Defines `EpisodePool`, the vector environment of ``gym.make_vec`` for every visenv id.

A turn of a language model takes seconds, and the time of a tool call varies. Therefore no
environment waits for another: any subset can be stepped, and results are read as they arrive. A
failure of one environment (an exception, a call that hangs, a dead process) ends only its episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.env import Observation
from visenv.errors import ConfigurationError, VisenvError
from visenv.rollout.subset_vector_env import SubsetVectorEnv
from visenv.rollout.vector_requests import (
    EnvResult,
    ResetRequest,
    Seeds,
    nothing_new,
    reset_requests,
    spread_seeds,
)
from visenv.types import Failure

Batch = dict[str, tuple[Any, ...]]
"""``{"text": (str, …), "images": ((uint8 [H, W, 3], …), …)}``, one entry per environment."""

StepBatch = tuple[Batch, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class EpisodePool(SubsetVectorEnv):
    """Runs `num_envs` environments, with one worker for each, as a vector environment.

    The autoreset mode is DISABLED: after the end of its episode an environment waits for a reset.
    An automatic reset would discard a turn of the policy, or start a sample that was not chosen. To
    leave out an environment that waits for a reset, do not pass its index to `step_at` or `submit`,
    and pass None as its action to `step`.

    If an environment raises an exception, takes longer than `timeout` or dies, its step is aborted:
    the step is truncated, with reward 0.0, the reason in ``info["aborted"]``, and an `Aborted`
    event. The environment is replaced by a new one, and a late result of the old one is ignored. A
    `VisenvError` (for example, a row that cannot be read) also aborts the episode, but the
    environment is not replaced. Use a pool from one thread only.

    Args:
        env_id: A registered id.
        num_envs: Number of environments.
        workers: With ``"thread"``, all environments share the memory of this process (loaded data,
            model servers) and its global interpreter lock; a call that hangs is abandoned. With
            ``"process"``, each environment is built from the JSON of its spec in a child process,
            which is killed if a call hangs.
        timeout: Time limit of one call in seconds; None sets no limit. It can be changed between
            calls.
        **kwargs: Options of the environment, as for `gym.make`.

    Raises:
        ConfigurationError: If an option has an invalid value.
        VisenvError: If an environment cannot be made.
    """

    @override
    def reset(
        self,
        *,
        seed: Seeds = None,
        options: Any = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all environments.

        Args:
            seed: A list, a tuple or an array with one seed for each environment
                (``[s] * num_envs`` makes one group), or a single seed. From a single seed,
                `numpy.random.SeedSequence` derives an independent seed for each environment. The
                seeds are not ``seed + i``, because ``reset(seed=1)`` would then share samples with
                ``reset(seed=0)``.
            options: The options of `VisEnv.reset`: one mapping for all environments, or one for
                each. With Gymnasium's option ``"reset_mask"``, bool ``[num_envs]``, only the
                environments whose entry is True are reset.

        Raises:
            ConfigurationError: If an environment refuses its options, or if the number of seeds
                differs from the number of environments.
        """
        each = spread_seeds(seed, self.num_envs)
        chosen = range(self.num_envs)
        if isinstance(options, Mapping) and "reset_mask" in options:
            chosen = np.flatnonzero(options["reset_mask"]).tolist()
            options = {name: value for name, value in options.items() if name != "reset_mask"}
        resets = reset_requests(each, options)
        observation, _, _, _, infos = self._batch(
            self._complete({index: resets[index] for index in chosen})
        )
        return observation, infos

    @override
    def step(self, actions: Sequence[str | None]) -> StepBatch:
        """Step all environments, except those whose action is None.

        Args:
            actions: One turn of the policy, or None, for each environment.

        Returns:
            Batched observations, rewards (float64 ``[num_envs]``), terminations and truncations
            (bool ``[num_envs]``), and infos. An environment whose action is None has an empty
            observation, reward 0, both flags False, and no info.

        Raises:
            EpisodeOverError: If an action is for an environment that waits for a reset.
        """
        if len(actions) != self.num_envs:
            raise ConfigurationError(f"Expected {self.num_envs} actions, got {len(actions)}.")
        given = {index: action for index, action in enumerate(actions) if action is not None}
        return self._batch(self._complete(given))

    @override
    def render(self) -> tuple[Any, ...]:
        """Return the frame of each environment; None if rendering fails.

        Raises:
            ConfigurationError: If `ready` has not yet returned all results.
        """
        frames = self._call_each("render", [{}] * self.num_envs)
        return tuple(self._frame(index, frame) for index, frame in enumerate(frames))

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, as `gymnasium.vector.SyncVectorEnv.call` does.

        Args:
            name: The name of a method of the environment or of a wrapper. If it names an attribute
                that is not callable, the value of the attribute is returned.
            *args: Arguments of the method. They must be picklable if workers are processes.
            **kwargs: Keyword arguments of the method.

        Returns:
            The result of each environment.

        Raises:
            VisenvError: If the call fails in an environment, for example because there is no such
                method.
            ConfigurationError: If `ready` has not yet returned all results.
        """
        arguments = {"name": name, "args": args, "kwargs": kwargs}
        return self._results("call_attr", [arguments] * self.num_envs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return the attribute `name` of every environment; see `call`."""
        return self._results("get_wrapper_attr", [{"name": name}] * self.num_envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set the attribute `name` of every environment.

        Args:
            name: The name of the attribute. It is set on the outermost wrapper that has it, or on
                the environment.
            values: One value for all environments, or a list or tuple with one value for each.

        Raises:
            ConfigurationError: If the number of values differs from the number of environments, or
                if `ready` has not yet returned all results.
        """
        # A named tuple, such as `EpisodeLimits`, is one value.
        each = values if type(values) in (list, tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ConfigurationError(
                f"{self.num_envs} environments need {self.num_envs} values, got {len(each)}."
            )
        self._results("set_wrapper_attr", [{"name": name, "value": value} for value in each])

    @override
    def close_extras(self, grace: float | None = None, **kwargs: Any) -> None:
        """End all workers.

        Args:
            grace: Time limit in seconds for all workers together to close their environments.
                After it, the remaining processes are killed, and the remaining threads are
                abandoned. By default 5 s plus 0.25 s for each environment.
            **kwargs: Not used.
        """
        self._worker_group.close(grace)

    # ------------------------------------------------------------------ inside

    def _call_each(self, method: str, arguments: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Call a method of every environment; return results and `Failure` values."""
        for index in range(self.num_envs):
            self._check_request(index, ResetRequest())
        for index, each in enumerate(arguments):
            self._worker_group.call(index, method, each, self.timeout)
        values: dict[int, Any] = {}
        while self._worker_group.busy:
            values |= self._worker_group.collect(None)
        return [values[index] for index in range(self.num_envs)]

    def _results(self, method: str, arguments: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
        """Call a method of every environment; raise the first failure when all have answered."""
        values = self._call_each(method, arguments)
        failures = {i: value for i, value in enumerate(values) if isinstance(value, Failure)}
        for index, failure in failures.items():
            if failure.source in ("timeout", "worker"):
                self._replace(index, failure)
        for index, failure in failures.items():
            raise VisenvError(f"Environment {index} failed. {failure.traceback or failure}")
        return tuple(values)

    def _frame(self, index: int, value: Any) -> Any:
        if not isinstance(value, Failure):
            return value
        self._replace(index, value)
        return None

    def _batch(self, results: Mapping[int, EnvResult]) -> StepBatch:
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
