"""Defines finished episodes as values, and checks their invariants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from visenv.errors import EpisodeError
from visenv.types.failure import Failure
from visenv.types.image import Image
from visenv.types.message import Message
from visenv.types.segment import Segment
from visenv.types.turn import FinishReason, TurnRequest
from visenv.types.video import Video

Status = Literal["terminated", "truncated", "aborted"]


@dataclass(frozen=True, slots=True)
class Turn:
    """Holds the messages of the environment, the policy's turn that follows, and its result.

    Attributes:
        messages: Messages shown before the policy's turn.
        text: The whole turn of the policy.
        reward: The reward of the step.
        events: The events of the step.
        finish_reason: Why sampling stopped.
        request: The environment's request; its prefill was not sampled.
        hidden_frames: Videos of the step that the policy did not see.
        sampling_seconds: Wall time of the policy's reply, or None if it was not measured.
            Comparisons of episodes ignore times.
        env_seconds: Wall time of the environment's step, including tools, or None.
        advantage: The advantage of the turn's tokens, or None if the turn was not used for
            training.
    """

    messages: tuple[Message, ...]
    text: str
    reward: float
    events: tuple[Any, ...]
    finish_reason: FinishReason
    request: TurnRequest = TurnRequest()  # noqa: RUF009  (an immutable tuple)
    hidden_frames: tuple[Video, ...] = ()
    sampling_seconds: float | None = field(default=None, compare=False)
    env_seconds: float | None = field(default=None, compare=False)
    advantage: float | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """Holds one finished episode.

    Attributes:
        env_id: Registered id, including the version.
        sample_id: `Sample.id`.
        kind: `Sample.kind`.
        seed: The seed of `reset`.
        group: Index of its group in the batch.
        member: Index of the episode in its group.
        turns: The turns, in order.
        status: How the episode ended.
        reason: The limit that truncated the episode, otherwise ``""``.
        failure: The failure that aborted the episode, otherwise None.
        closing: Messages shown after the last turn (usually none).
        segments: Token streams, empty for a policy without tokens.
        terms: Reward terms of the last step by name, unweighted; None for a term that does not
            apply.
        term_notes: Reasons by name, for each term that is None.
        metrics: Task metrics of the last step.
        question: `Sample.question`.
        answers: `Sample.answers`.
        ground_truth: `Sample.ground_truth`.
        media: SHA-256 of the sample's media at their original size, by name.
        env_spec: The spec of the environment as JSON, or ``""``.
        index: Row in the finite source, or None if the seed selected the sample.
        term_weights: The weight of each term in the reward, by name; empty if the reward is not a
            weighted sum, or the file was written before weights were saved.
        world_version: The version of the world that the sample comes from
            (`visenv.data.source.world_version`); 1 in files that were written before versions.

    Raises:
        EpisodeError: If the fields contradict each other.
    """

    env_id: str
    sample_id: str
    kind: str
    seed: int
    group: int
    member: int
    turns: tuple[Turn, ...]
    status: Status
    reason: str = ""
    failure: Failure | None = None
    closing: tuple[Message, ...] = ()
    segments: tuple[Segment, ...] = ()
    terms: Mapping[str, float | None] = field(default_factory=dict)
    term_notes: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    question: str = ""
    answers: tuple[str, ...] = ()
    ground_truth: Any = None
    media: Mapping[str, str] = field(default_factory=dict)
    env_spec: str = ""
    index: int | None = None
    term_weights: Mapping[str, float] = field(default_factory=dict)
    world_version: int = 1

    def __post_init__(self) -> None:
        _require(
            bool(self.reason) == (self.status == "truncated"),
            f"a {self.status} episode with the reason {self.reason!r}.",
        )
        _require(
            (self.failure is not None) == (self.status == "aborted"),
            f"a {self.status} episode with the failure {self.failure}.",
        )
        _require(
            self.status != "aborted" or self.reward == 0.0,
            f"an aborted episode with the reward {self.reward}.",
        )
        if self.segments:
            self._check_segments()

    def _check_segments(self) -> None:
        turns = [span.turn for segment in self.segments for span in segment.turns]
        _require(
            turns == list(range(len(self.turns))),
            f"{len(self.turns)} turns, but the segments hold turns {turns}.",
        )
        images = {span.sha256 for segment in self.segments for span in segment.images}
        videos = {span.sha256 for segment in self.segments for span in segment.videos}
        _require(
            images <= {image.sha256 for image in self.images},
            "a segment names an image that no message holds.",
        )
        _require(
            videos <= {video.sha256 for video in self.videos},
            "a segment names a video that no message holds.",
        )

    @property
    def reward(self) -> float:
        """Return the sum of the rewards of all steps."""
        return float(sum(turn.reward for turn in self.turns))

    @property
    def end_reason(self) -> str:
        """Return the limit or failure that ended the episode, ``""`` if it terminated."""
        return self.reason if self.failure is None else str(self.failure)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return every message of the environment, in order."""
        return (*(each for turn in self.turns for each in turn.messages), *self.closing)

    @property
    def images(self) -> tuple[Image, ...]:
        """Return all shown images and video frames, in order, including repetitions."""
        return tuple(image for message in self.messages for image in message.images)

    @property
    def videos(self) -> tuple[Video, ...]:
        """Return all shown videos, in order, including repetitions."""
        return tuple(video for message in self.messages for video in message.videos)

    @property
    def hidden_frames(self) -> tuple[Image, ...]:
        """Return all frames that the policy did not see, in order."""
        videos = [video for turn in self.turns for video in turn.hidden_frames]
        return tuple(frame for video in videos for frame in video.frames)

    @property
    def events(self) -> tuple[Any, ...]:
        """Return all events, in order."""
        return tuple(event for turn in self.turns for event in turn.events)

    @property
    def num_sampled_tokens(self) -> int:
        """Return the number of tokens that the policy sampled, in all segments."""
        return sum(int(segment.loss_mask.sum()) for segment in self.segments)

    def without_messages(self) -> Episode:
        """Return the episode without messages, hidden frames and segments.

        The remaining fields (turns, events, rewards, metrics) take a few kilobytes, so that the
        results of thousands of episodes fit into memory.
        """
        turns = tuple([replace(turn, messages=(), hidden_frames=()) for turn in self.turns])
        return replace(self, turns=turns, closing=(), segments=())


Group = Sequence[Episode]
"""Independent episodes of one sample, without aborted ones."""


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise EpisodeError(problem)
