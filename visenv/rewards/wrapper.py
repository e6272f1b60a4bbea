"""Rewards as a wrapper: named terms over the event log and the sample, never over text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from visenv.env import Observation, VisEnv
from visenv.errors import ServiceError
from visenv.types import Aborted, Log, Sample, StepRecord


class RewardTerm(NamedTuple):
    """One named part of a reward.

    Attributes:
        name: Its key in `StepRecord.terms`.
        weight: Its factor in the sum.
        score: The unweighted value of a finished episode, from its events and its sample.
    """

    name: str
    weight: float
    score: Callable[[Log, Sample], float]


class RewardWrapper(gym.Wrapper[Observation, str, Observation, str]):
    """Replaces the bare result by a weighted sum of terms, paid when the episode ends.

    Terms are paid for a truncated episode too (a well-formed turn is worth something). An aborted
    episode gets 0; a term that cannot be computed (`ServiceError`) aborts it.

    Args:
        env: The environment.
        terms: What is summed; every unweighted term lands in ``info["step"].terms``.
        top: The largest reward there is, where terms exclude one another; by default the sum of the
            positive weights, each term scoring at most 1.

    Attributes:
        top: The largest reward there is.
        each_step: Whether terms are worked out after every step, not at the end alone.
    """

    each_step: ClassVar[bool] = False

    def __init__(
        self,
        env: gym.Env[Observation, str],
        terms: Sequence[RewardTerm],
        top: float | None = None,
    ) -> None:
        super().__init__(env)
        self.terms = tuple(terms)
        self.top = sum(max(term.weight, 0.0) for term in terms) if top is None else top

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The environment's own spec: the reward is chosen by its ``reward`` argument."""
        return self.env.spec

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step, and pay the terms when the episode has ended."""
        observation, _, terminated, truncated, info = self.env.step(action)
        if info["aborted"] or not (self.each_step or terminated or truncated):
            return observation, 0.0, terminated, truncated, info
        base = self.env.unwrapped
        assert isinstance(base, VisEnv)
        record: StepRecord = info["step"]
        terms: dict[str, float] = {}
        reward = 0.0
        try:
            for name, weight, score in self.terms:
                terms[name] = score(base.log, base.sample)
                reward += weight * terms[name]
        except ServiceError as error:
            if base.on_abort == "raise":
                raise
            record.events += (Aborted(base.turn - 1, error.boundary, error.reason),)
            record.metrics, record.messages, record.ask = {}, (), None
            info = {**info, "aborted": str(error), "truncated_by": ""}
            return {"text": "", "images": ()}, 0.0, False, True, info
        record.terms = terms
        return observation, float(self._due(reward)), terminated, truncated, info

    def _due(self, worth: float) -> float:
        """What is paid now, of what the terms come to."""
        return worth
