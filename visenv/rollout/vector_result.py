"""Defines the requests to one environment of an `EpisodePool`, and the results."""

from __future__ import annotations

from typing import Any, NamedTuple

from visenv.env import Observation
from visenv.types import Aborted, Failure, StepResult


class ResetRequest(NamedTuple):
    """Requests the start of an episode, with the arguments of `VisEnv.reset`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


class EnvResult(NamedTuple):
    """Holds the result of a step or a reset of one environment, with the five values of `step`.

    The result of a reset has the reward 0.0, and `terminated` and `truncated` are False. The result
    of a failed reset is like that of an aborted step.
    """

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def over(self) -> bool:
        """Return whether the episode has ended; the next request must then be a reset."""
        return self.terminated or self.truncated


def nothing_new() -> Observation:
    """Return an empty observation."""
    return {"text": "", "images": ()}


def aborted(turn: int, failure: Failure) -> EnvResult:
    """Return the result of an episode whose environment failed in turn `turn`."""
    event = Aborted(turn, failure.name, failure.reason)
    step = StepResult(events=(event,), failure=failure)
    info = {"step": step, "aborted": str(failure), "truncated_by": ""}
    return EnvResult(nothing_new(), 0.0, False, True, info)
