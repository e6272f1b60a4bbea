"""What is asked of one environment of a pool, and what comes back."""

from __future__ import annotations

from typing import Any, NamedTuple

from visenv.env import Observation
from visenv.pool.failure import Failure
from visenv.types import Aborted, StepRecord


class Reset(NamedTuple):
    """Start an episode: the arguments of `VisEnv.reset`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


class Result(NamedTuple):
    """What one environment answered: the five values of `step`.

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
    """The observation in which nothing is new."""
    return {"text": "", "images": ()}


def aborted(turn: int, failure: Failure) -> Result:
    """The end of an episode whose environment failed in turn `turn`."""
    event = Aborted(turn, failure.boundary, failure.reason)
    info = {"step": StepRecord(events=(event,)), "aborted": str(failure), "truncated_by": ""}
    return Result(nothing_new(), 0.0, False, True, info)
