"""EpisodePool: the vector environment of every visenv id, without lock step.

A language model takes seconds for a turn and a tool takes what it takes, so no environment may wait
for another: any subset can be stepped, results are taken as they come, and whatever goes wrong in
one environment (an exception, a call without end, a dead process) ends that one episode only.
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
from visenv.rollout.vector_reset import Seeds, reset_requests, spread_seeds
from visenv.rollout.vector_result import Reset, Result, nothing_new
from visenv.types import Failure

Batch = dict[str, tuple[Any, ...]]
"""``{"text": (str, …), "images": ((uint8 [H, W, 3], …), …)}``, one entry per environment."""

StepBatch = tuple[Batch, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class EpisodePool(SubsetVectorEnv):
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

    @override
    def reset(
        self,
        *,
        seed: Seeds = None,
        options: Any = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all environments.

        Args:
            seed: A seed for each in a list, a tuple or an array, ``[s] * num_envs`` being one
                group; or one from which unrelated seeds are derived (`numpy.random.SeedSequence`;
                not ``seed + i``, which would let neighbouring seeds share tasks).
            options: The options of `VisEnv.reset`, one mapping for all or one for each. With
                Gymnasium's ``"reset_mask"``, bool ``[num_envs]``, only those are reset.

        Raises:
            ConfigurationError: If an environment refuses its options, or if there is not one seed
                for each.
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

    @override
    def render(self) -> tuple[Any, ...]:
        """What each environment renders; None for one that fails to.

        Raises:
            ConfigurationError: If results are still to be taken.
        """
        frames = self._call_each("render", [{}] * self.num_envs)
        return tuple(self._frame(index, frame) for index, frame in enumerate(frames))

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, as `gymnasium.vector.SyncVectorEnv.call` does.

        Args:
            name: The method, of the environment or of a wrapper; an attribute gives its value.
            *args: Arguments of the method; they must pickle if workers are processes.
            **kwargs: Keyword arguments of the method.

        Returns:
            The result of each environment.

        Raises:
            VisenvError: If it fails in an environment, for example because there is no such method.
            ConfigurationError: If results are still to be taken.
        """
        arguments = {"name": name, "args": args, "kwargs": kwargs}
        return self._results("call_attr", [arguments] * self.num_envs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return the attribute `name` of every environment; see `call`."""
        return self._results("get_wrapper_attr", [{"name": name}] * self.num_envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set the attribute `name` of every environment.

        Args:
            name: The attribute. The outermost wrapper that has it is changed, or the environment.
            values: One value for all environments, or a list or tuple with one for each.

        Raises:
            ConfigurationError: If there is not one value for each, or results are still to be
                taken.
        """
        # A named tuple, such as `Limits`, is one value.
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
            grace: Seconds that they have to close their environments, all at the same time; then
                processes are killed, and threads that hang are left behind. By default 5 s, and
                0.25 s more for each environment.
            **kwargs: Not used.
        """
        self._worker_group.close(grace)

    # ------------------------------------------------------------------ inside

    def _call_each(self, method: str, arguments: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Call a method of every environment; return results and `Failure` values."""
        for index in range(self.num_envs):
            self._check_request(index, Reset())
        for index, each in enumerate(arguments):
            self._worker_group.call(index, method, each, self.timeout)
        values: dict[int, Any] = {}
        while self._worker_group.busy:
            values |= self._worker_group.collect(None)
        return [values[index] for index in range(self.num_envs)]

    def _results(self, method: str, arguments: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
        """Call a method of every environment; raise the first failure after all have answered."""
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
