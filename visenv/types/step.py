"""Defines `StepResult`, the data that one `reset` or `step` adds to an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from visenv.types.empty import EMPTY
from visenv.types.failure import Failure
from visenv.types.message import Message
from visenv.types.turn import TurnRequest
from visenv.types.video import Video


class StepResult(NamedTuple):
    """Holds the result of a `reset` or a `step`.

    `VisEnv` puts it into ``info["step"]``. It is immutable: a wrapper that changes a value puts a
    new result (``result._replace(...)``) into a new ``info``. If a wrapper changes the reward or
    the end of an episode in the return values of `step`, the player uses those.

    Attributes:
        messages: Chat messages added since the last action, in order; empty after the last turn.
        events: The events of this step, in order.
        request: The request for the next turn, or None when the episode has ended.
        reward: The reward of this step.
        terminated: Whether the task ended.
        truncated_by: The limit that ended the episode, or ``""``.
        failure: The failure that aborted the episode, or None.
        hidden_frames: Videos of this step that the policy does not see, for viewers. They are saved
            with the turn and never enter training data.
        metrics: Task metrics by name, on the last step only.
        pending: Whether events or reward terms of the episode are still being computed
            (`visenv.rewards.RewardWrapper.finish` waits for them).
        terms: Unweighted reward terms by name, filled by the reward wrapper; None for a term that
            does not apply.
        term_notes: Reasons by name, for each term that is None.
        late_events: The complete events of earlier turns, by turn, if `VisEnv.turn_events` was
            deferred; on the last step only.
        advice: The answer to an `AdviceRequest`, or None.
        sandbox_wait_seconds: How long the step waited for workers of a sandbox. The player fills it
            in for the statistics of the rollout, and it does not enter the episode.
    """

    messages: tuple[Message, ...] = ()
    events: tuple[Any, ...] = ()
    request: TurnRequest | None = None
    reward: float = 0.0
    terminated: bool = False
    truncated_by: str = ""
    failure: Failure | None = None
    hidden_frames: tuple[Video, ...] = ()
    metrics: Mapping[str, float] = EMPTY
    pending: bool = False
    terms: Mapping[str, float | None] = EMPTY
    term_notes: Mapping[str, str] = EMPTY
    late_events: Mapping[int, tuple[Any, ...]] = EMPTY
    advice: Any = None
    sandbox_wait_seconds: float = 0.0

    @property
    def is_over(self) -> bool:
        """Return whether the episode has ended."""
        return self.terminated or bool(self.truncated_by) or self.failure is not None

    @property
    def info(self) -> dict[str, Any]:
        """Return the ``info`` of Gymnasium: this result, and the reasons of an early end as text.

        ``"aborted"`` and ``"truncated_by"`` are ``""`` if there is no such reason.
        """
        aborted = "" if self.failure is None else str(self.failure)
        return {"step": self, "aborted": aborted, "truncated_by": self.truncated_by}


class EpisodeInfo(NamedTuple):
    """Holds facts about an episode that are known when it starts.

    Attributes:
        env_id: The registered id of the environment, or the name of its class.
        env_spec: The spec of the environment with its wrappers as JSON (`EnvSpec.to_json`), or
            ``""`` if it cannot be converted to JSON.
        sample_id: `Sample.id`.
        kind: `Sample.kind`.
        question: `Sample.question`.
        answers: `Sample.answers`.
        ground_truth: `Sample.ground_truth`.
        media: SHA-256 of the sample's media at their original size, by name
            (`VisEnv.media_hashes`).
        term_weights: The weight of each reward term, by name; empty if the reward is not a weighted
            sum of terms.
        world_version: The version of the world that the sample comes from
            (`visenv.data.source.world_version`).
    """

    env_id: str = ""
    env_spec: str = ""
    sample_id: str = ""
    kind: str = ""
    question: str = ""
    answers: tuple[str, ...] = ()
    ground_truth: Any = None
    media: Mapping[str, str] = EMPTY
    term_weights: Mapping[str, float] = EMPTY
    world_version: int = 1
