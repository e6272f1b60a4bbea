"""The requests to one environment of a pool, and its results."""

from __future__ import annotations

from typing import Any, NamedTuple

from visenv.env import Observation
from visenv.types import Aborted, Failure, StepResult


class Reset(NamedTuple):
    """Start an episode: the arguments of `VisEnv.reset`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


class Result(NamedTuple):
    """The result of one environment: the five values of `step`.

    A reset has the reward 0.0 and neither flag; one that failed is aborted as a step would be.
    """

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def over(self) -> bool:
        """Whether the episode has ended, so that only a reset can follow."""
        return self.terminated or self.truncated


def nothing_new() -> Observation:
    """Return the observation in which nothing is new."""
    return {"text": "", "images": ()}


def aborted(turn: int, failure: Failure) -> Result:
    """Return the end of an episode whose environment failed in turn `turn`."""
    event = Aborted(turn, failure.name, failure.reason)
    step = StepResult(events=(event,), failure=failure)
    info = {"step": step, "aborted": str(failure), "truncated_by": ""}
    return Result(nothing_new(), 0.0, False, True, info)
