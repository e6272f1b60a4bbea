"""Defines `RewardWrapper`, a reward of named terms over the event log and the sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
from typing_extensions import override

from visenv import background
from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, ServiceError
from visenv.rewards.named import read, written, written_terms
from visenv.rewards.terms import RewardContext, RewardTerm
from visenv.scorers.verdict_events import Verdicts
from visenv.types import Aborted, EventLog, Failure, Sample, StepResult
from visenv.wrappers import RestorableWrapper

Combine = Callable[[Mapping[str, float | None]], float]
"""Computes the reward from the unweighted terms; None means that a term does not apply."""


class RewardWrapper(RestorableWrapper):
    """Replaces the score of the task by a combination of named terms, at the end of the episode.

    The reward of a truncated episode also consists of its terms, because a well-formed turn has a
    value. An aborted episode gets 0; a term that cannot be computed (`ServiceError`) aborts the
    episode.

    A plain `step` waits for asynchronous terms. A `Collector` defers them: it sets `defers` and
    calls `finish` if the result of the last step is `pending`.

    Args:
        env: The environment.
        terms: The terms, which are computed in order. All unweighted values are in
            ``info["step"].terms``. A saved episode contains their functions as names, so they are
            at the top of a module if it is to be rescored (`visenv.rewards.named`).
        top: The maximum reward; required for terms that exclude each other. By default it is the
            sum of the positive weights, for terms of at most 1.
        combine: Computes the reward from the unweighted terms; by default the weighted sum, in
            which a term that does not apply is 0.

    Attributes:
        top: The largest possible reward.
        term_weights: The weight of each term, by name; empty if `combine` is given.
        each_step: Whether terms are computed after every step and not only at the end.
        defers: Whether the player calls `finish`.
        defers_all: Whether terms that are not asynchronous are also deferred.
    """

    each_step: ClassVar[bool] = False

    def __init__(
        self,
        env: gym.Env[Observation, str],
        terms: Sequence[RewardTerm],
        top: float | None = None,
        combine: Combine | None = None,
    ) -> None:
        super().__init__(env)
        terms = [RewardTerm(*each)._replace(score=read(each[2])) for each in terms]
        if combine is not None:
            combine = read(combine)
        names = [term.name for term in terms]
        if len({*names}) < len(names):
            raise ConfigurationError(f"Reward terms need different names, got {names}.")
        self.terms = tuple(terms)
        self.top = sum(max(term.weight, 0.0) for term in terms) if top is None else top
        self.combine = combine or self._weighted_sum
        self.term_weights = {} if combine else {term.name: term.weight for term in terms}
        self.defers = self.defers_all = False
        self._are_async = [term.is_async for term in terms]
        self._waits = any(self._are_async)

    @classmethod
    @override
    def saved_arguments(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with the functions of terms as names."""
        saved = dict(arguments)
        if "terms" in saved:
            saved["terms"] = written_terms(saved["terms"])
        if saved.get("combine") is not None:
            saved["combine"] = written(saved["combine"])
        return saved

    @property
    def waits(self) -> bool:
        """Return whether `step` may wait for an asynchronous term."""
        return self._waits and not self.defers

    @property
    def base(self) -> VisEnv:
        """Return the environment under all wrappers."""
        base = self.env.unwrapped
        if not isinstance(base, VisEnv):
            raise ConfigurationError(
                f"A RewardWrapper reads the events of a VisEnv, got {type(base).__name__}."
            )
        return base

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step the environment, and add the terms to the reward if the episode has ended."""
        observation, _, terminated, truncated, info = self.env.step(action)
        result: StepResult = info["step"]
        if result.failure is not None or not (self.each_step or terminated or truncated):
            if result.reward:
                info = {**info, "step": result._replace(reward=0.0)}
            return observation, 0.0, terminated, truncated, info
        scored = self._score_or_defer(result)
        info = {**info, **scored.info}
        if scored.failure is None:
            return observation, scored.reward, terminated, truncated, info
        return {"text": "", "images": ()}, 0.0, False, True, info

    def end(self, result: StepResult) -> StepResult:
        """Compute the reward of an episode that a wrapper outside of this one has ended.

        Args:
            result: The result of `VisEnv.end_by_wrapper`.
        """
        return self._score_or_defer(result)

    async def finish(self, result: StepResult) -> StepResult:
        """Wait for deferred events and terms, and compute the reward.

        Args:
            result: The `pending` result of the last step.

        Returns:
            The result with reward, terms, metrics and all events; with a failure if a service
            failed after all retries.
        """
        if result.pending and self.base.has_late_events:
            try:
                result = await self.base.finish(result)
            except ServiceError as error:
                return self._aborted(result, error)
        return await self._scored_async(result._replace(pending=False))

    async def score(
        self,
        log: EventLog,
        sample: Sample,
        recorded: Verdicts | None = None,
        ask_missing: bool = False,
    ) -> RewardContext:
        """Compute all terms of an episode.

        Args:
            log: The events of the episode.
            sample: The sample of the episode.
            recorded: Recorded verdicts, which replace those of scorers; if None, the scorers are
                used.
            ask_missing: Whether verdicts that are not recorded are requested from scorers.

        Returns:
            The context with the values of the terms, their notes, and the verdicts of scorers.

        Raises:
            ServiceError: If a scorer failed after all retries.
        """
        context = RewardContext(log, sample, recorded, ask_missing)
        for term, is_async in zip(self.terms, self._are_async, strict=True):
            if is_async:
                await context.compute_async(term)
            else:
                context.compute(term)
        return context

    def begin_episode(self) -> None:
        """Reset the state of the previous episode; called by `reset` and before rescoring."""

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode without rewards so far."""
        self.begin_episode()
        return self.env.reset(seed=seed, options=options)

    def reward_now(self, total: float) -> float:
        """Return the part of the total of the terms that was not paid in earlier steps."""
        return total

    def total(self, terms: Mapping[str, float | None]) -> float:
        """Return the total of the terms, as `combine` computes it.

        Raises:
            ConfigurationError: If `combine` does not return a number.
        """
        reward = self.combine(terms)
        if isinstance(reward, bool) or not isinstance(reward, int | float):
            raise ConfigurationError(f"combine must return a number, got {reward!r}.")
        return float(reward)

    # ------------------------------------------------------------------ inside

    def _score_or_defer(self, result: StepResult) -> StepResult:
        if self.defers and (result.pending or self._waits or self.defers_all):
            return result._replace(reward=0.0, pending=True)
        if result.pending:
            return background.run(self.finish(result))
        if self._waits:
            return background.run(self._scored_async(result))
        base = self.base
        context = RewardContext(base.log, base.sample)
        try:
            for term in self.terms:
                context.compute(term)
        except ServiceError as error:
            return self._aborted(result, error)
        return self._pay(result, context)

    async def _scored_async(self, result: StepResult) -> StepResult:
        """Score the current log; a `ServiceError` becomes the failure of the result."""
        base = self.base
        try:
            return self._pay(result, await self.score(base.log, base.sample))
        except ServiceError as error:
            return self._aborted(result, error)

    def _pay(self, result: StepResult, context: RewardContext) -> StepResult:
        return result._replace(
            events=(*result.events, *context.verdict_events),
            reward=float(self.reward_now(self.total(context.terms))),
            terms=context.terms,
            term_notes=context.notes,
        )

    def _aborted(self, result: StepResult, error: ServiceError) -> StepResult:
        base = self.base
        if base.on_abort == "raise":
            raise error
        failure = Failure.of(error)
        event = Aborted(base.turn - 1, failure.name, failure.reason)
        return StepResult(events=(*result.events, event), failure=failure)

    def _weighted_sum(self, terms: Mapping[str, float | None]) -> float:
        reward = 0.0
        for term in self.terms:
            value = terms[term.name]
            if value is not None:
                reward += term.weight * value
        return reward
