"""Defines `EnvAdapter`, the interface between a wrapped environment and an episode player.

The outermost wrapper determines the rewards and the end of the episode. An adapter does not send
observations to the player, because they only repeat the messages as arrays. Therefore only small
values are transferred if the environment runs in another process, and no observation is made unless
a wrapper may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from visenv import background
from visenv.data.source import world_version
from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, DataError
from visenv.rewards.terms import as_float
from visenv.rewards.wrapper import RewardWrapper
from visenv.rollout.advice import Advisor
from visenv.rollout.arguments import check_env
from visenv.sandbox.queue import sandbox_waits
from visenv.types import AdviceRequest, EpisodeInfo, Failure, StepResult
from visenv.wrappers import MessageWrapper, changes_steps, check_wrappers, layers

Env = gym.Env[Observation, str]
MakeEnv = Callable[[], Env]

_UNREAD = frozenset(
    getattr(wrapper, method)
    for wrapper in (
        *(gym.Wrapper, gym.RewardWrapper, TimeLimit, OrderEnforcing, PassiveEnvChecker),
        *(MessageWrapper, RewardWrapper),
    )
    for method in ("reset", "step")
)
"""Methods of wrappers that use no observation; the checker accepts an empty one."""


class EnvAdapter:
    """Adapts an environment to a player that reads `StepResult` values.

    Args:
        env: The environment with its wrappers. No other code may use it.
        defer_all: Whether all reward terms are deferred to `finish`, including those that are not
            asynchronous. Set it if the player edits the event log after the last step and before
            `finish`, so that the terms are computed on the edited log. Terms that are computed in
            each step, or whose reward an outer wrapper changes, are never deferred.

    Attributes:
        env: The environment with its wrappers.

    Raises:
        ConfigurationError: If it is no environment, or if a wrapper changes observations: a policy
            reads messages only, so such a wrapper has no effect.
    """

    def __init__(self, env: Env, defer_all: bool = False) -> None:
        check_env(env)
        check_wrappers(env)
        self.env = env
        self._defer_all = defer_all
        self._advisor: Advisor | None = None
        self._last = StepResult()
        self._is_observed = any(_may_read_observations(layer) for layer in layers(env))
        self._reward_wrapper = self._defer()

    def _defer(self) -> RewardWrapper | None:
        """Allow each reward wrapper to defer its rewards, unless an outer wrapper reads them.

        The outermost reward wrapper is returned.
        """
        scorer: RewardWrapper | None = None
        deferrable = True
        for layer in layers(self.env):
            if isinstance(layer, RewardWrapper):
                scorer = scorer or layer
                layer.defers = deferrable = deferrable and not layer.each_step
                layer.defers_all = self._defer_all
            elif isinstance(layer, VisEnv):
                layer.defers = deferrable
            elif scorer is None and changes_steps(layer):
                deferrable = False
        return scorer

    @property
    def waits(self) -> bool:
        """Return whether `act` may wait for an asynchronous operation, such as a tool call."""
        return any(getattr(layer, "waits", False) for layer in layers(self.env))

    # ------------------------------------------------------------------ one episode

    def begin(
        self,
        seed: int,
        options: dict[str, Any] | None = None,
        advice: AdviceRequest | None = None,
        policy_seed: int = 0,
    ) -> tuple[EpisodeInfo, StepResult]:
        """Reset the environment.

        Args:
            seed: The seed of `reset`.
            options: The options of `reset`.
            advice: The advice request of the policy (`Policy.advice_request`).
            policy_seed: Seed of the random numbers of the advice.

        Returns:
            Facts about the episode, and the result of the reset.

        Raises:
            ConfigurationError: If `reset` of a wrapper does not return a pair.
        """
        self._advisor = None if advice is None else Advisor(advice, self.env, policy_seed)
        with self._observations_if_read():
            started: Any = self.env.reset(seed=seed, options=options)
        if not isinstance(started, tuple) or len(started) != 2:
            raise ConfigurationError(
                f"reset() of {self._name} must return 2 values, got {started!r:.80}."
            )
        return self.info(), self._advised(self._result_of(started[1]))

    def act(self, text: str) -> StepResult:
        """Take a turn, and return its result as the outermost wrapper reports it.

        Raises:
            ConfigurationError: If the values that `step` of a wrapper returns do not follow the
                Gymnasium API.
        """
        with sandbox_waits() as waits:
            result = self._act(text)
        return result._replace(sandbox_wait_seconds=sum(waits))

    def _act(self, text: str) -> StepResult:
        with self._observations_if_read():
            step = self.env.step(text)
        reward, terminated, truncated, info = self._checked(step)
        result = self._result_of(info)
        if info.get("aborted") and result.failure is None:
            failure = Failure("service", "environment", str(info["aborted"]))
            result = result._replace(request=None, failure=failure)
        if result.failure is not None:
            return result._replace(reward=0.0)
        if not (terminated or truncated):
            if result.request is None:
                raise ConfigurationError(
                    f"{self._name} reports that the episode continues, but the wrapped environment "
                    "has ended it."
                )
            return self._advised(result._replace(reward=reward))
        if result.request is not None:
            result = self._end(result, terminated)
            if result.failure is not None:
                return result
            reward += result.reward
        reason = "" if terminated else result.truncated_by or "wrapper"
        self._last = result._replace(reward=reward, terminated=terminated, truncated_by=reason)
        return self._last

    def finish(self) -> StepResult:
        """Wait for the deferred parts of the last result, and return the complete result.

        Raises:
            ServiceError: If a service still fails after its retries, and the environment does not
                handle the error.
        """
        return background.run(self._finished())

    def submit_finish(self) -> Future[StepResult]:
        """Return a future of the result of `finish`, without blocking."""
        return background.submit(self._finished())

    def info(self) -> EpisodeInfo:
        """Return facts about the current episode; unknown facts are empty."""
        base = self.env.unwrapped
        env_id = base.spec.id if base.spec is not None else type(base).__name__
        sample = getattr(base, "sample", None)
        if sample is None:
            return EpisodeInfo(env_id)
        return EpisodeInfo(
            env_id,
            self._spec,
            sample.id,
            sample.kind,
            sample.question,
            sample.answers,
            sample.ground_truth,
            _media_of(base),
            {} if self._reward_wrapper is None else self._reward_wrapper.term_weights,
            world_version(getattr(base, "source", None)),
        )

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    # ------------------------------------------------------------------ inside

    @cached_property
    def _spec(self) -> str:
        spec = self.env.spec
        try:
            return "" if spec is None else spec.to_json()
        except (TypeError, ValueError):
            return ""  # an option, such as a source, cannot be converted to JSON

    @property
    def _name(self) -> str:
        names = [type(layer).__name__ for layer in layers(self.env)]
        return " around ".join(names)

    @contextmanager
    def _observations_if_read(self) -> Iterator[None]:
        """Let the environment make observations in a call only if a wrapper may read them."""
        base = self.env.unwrapped
        if self._is_observed or not isinstance(base, VisEnv):
            yield
            return
        base.observes = False
        try:
            yield
        finally:
            base.observes = True

    def _advised(self, result: StepResult) -> StepResult:
        if self._advisor is None or result.request is None:
            return result
        return result._replace(advice=self._advisor.advise())

    def _checked(self, step: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Check and return the values that `step` of the outermost wrapper returned."""
        if not isinstance(step, tuple) or len(step) != 5:
            raise ConfigurationError(
                f"step() of {self._name} must return 5 values, got {step!r:.80}."
            )
        _, reward, terminated, truncated, info = step
        number = as_float(reward)
        if number is None:  # NaN passes: the trainer saves a step with such a reward
            raise ConfigurationError(
                f"The reward of {self._name} must be a float, got {reward!r:.80}."
            )
        for flag in (terminated, truncated):
            if not isinstance(flag, bool | np.bool_):
                raise ConfigurationError(
                    f"terminated and truncated of {self._name} must be bools, got {flag!r:.80}."
                )
        return number, bool(terminated), bool(truncated), info

    def _result_of(self, info: Any) -> StepResult:
        result = info.get("step") if isinstance(info, dict) else None
        if not isinstance(result, StepResult):
            raise ConfigurationError(
                f"info of {self._name} must be a dict with a StepResult under 'step', as VisEnv "
                f"returns it, got {info!r:.80}."
            )
        return result

    def _end(self, result: StepResult, terminated: bool) -> StepResult:
        """Score an episode that a wrapper has ended."""
        base = self.env.unwrapped
        if not isinstance(base, VisEnv):
            return result._replace(request=None, reward=0.0)
        result = base.end_by_wrapper(result, terminated)
        if self._reward_wrapper is None:
            return result
        if self._defer_all:
            return result._replace(reward=0.0, pending=True)
        return self._reward_wrapper.end(result)

    async def _finished(self) -> StepResult:
        result, base = self._last, self.env.unwrapped
        assert isinstance(base, VisEnv)
        finish = base.finish if self._reward_wrapper is None else self._reward_wrapper.finish
        finished = await finish(result)
        if finished.failure is not None:
            return finished
        # `result.reward` is 0 if the environment ended the episode and deferred the reward. If a
        # wrapper ended the episode, it is the reward of that step.
        return finished._replace(reward=result.reward + finished.reward)


def _may_read_observations(layer: gym.Env[Any, Any]) -> bool:
    """Return whether a layer is a wrapper whose `reset` or `step` may read observations."""
    kind = type(layer)
    return isinstance(layer, gym.Wrapper) and not {kind.reset, kind.step} <= _UNREAD


def _media_of(base: gym.Env[Any, Any]) -> dict[str, str]:
    if not isinstance(base, VisEnv):
        return {}
    try:
        return base.media_hashes()
    except DataError:  # reading the sample raises the same error, which aborts the episode
        return {}
