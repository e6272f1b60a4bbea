"""Episodes as training data: append-only token segments, and the invariants they keep.

A trainer that reads these needs no tokenizer and no chat template: `token_ids` is exactly what the
policy saw and sampled, with every image placeholder expanded; images are referred to by the hash of
their pixels and stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.errors import EpisodeError
from visenv.types.event import Event
from visenv.types.image import Image
from visenv.types.message import Message
from visenv.types.turn import Ask, FinishReason

Status = Literal["terminated", "truncated", "aborted"]


class TurnSpan(NamedTuple):
    """Where one sampled turn lies in its segment: tokens ``start`` to ``end`` (exclusive).

    Attributes:
        turn: Its number in the episode, from 0.
        start: Its first token.
        end: One past its last.
        finish_reason: Why it ended.
        regex: What its sampling was constrained to, or None. Its tokens were drawn from those that
            keep a match possible, and are scored among those.
    """

    turn: int
    start: int
    end: int
    finish_reason: FinishReason
    regex: str | None = None


class ImageSpan(NamedTuple):
    """Where one image's placeholders lie in its segment.

    Attributes:
        offset: First placeholder token.
        length: Number of placeholder tokens, the product of `grid` over the merge size squared.
        sha256: The image's pixels, as `Image.sha256`.
        grid: Patches ``(time, height, width)`` the image processor made of it.
    """

    offset: int
    length: int
    sha256: str
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One append-only stream of tokens.

    Attributes:
        token_ids: int32 ``[length]``, image placeholders expanded.
        loss_mask: bool ``[length]``, True for the tokens the policy sampled, end token included.
        logprobs: float32 ``[length]``, natural log under the sampling distribution; 0 off the mask,
            NaN where the engine gave none.
        policy_version: int32 ``[length]``, the weights each token was sampled with; 0 off the mask.
        turns: The sampled spans, in order.
        images: The image spans, in order.
        placeholder_id: The token id that stands for image features.
        merge: Patches per placeholder along one side (Qwen-VL: 2).
        temperature: What the tokens were sampled at.
        processor: Fingerprint of the image processor, so that another one is noticed.

    Raises:
        EpisodeError: If the fields contradict one another.
    """

    token_ids: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32]
    policy_version: NDArray[np.int32]
    turns: tuple[TurnSpan, ...]
    images: tuple[ImageSpan, ...]
    placeholder_id: int
    merge: int
    temperature: float
    processor: str

    def __post_init__(self) -> None:
        _check_arrays(self)
        _check_images(self)
        _check_turns(self)

    def __len__(self) -> int:
        return len(self.token_ids)

    __hash__ = None  # type: ignore[assignment]  # arrays do not hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Segment):
            return NotImplemented
        arrays = ("token_ids", "loss_mask", "logprobs", "policy_version")
        values = ("turns", "images", "placeholder_id", "merge", "temperature", "processor")
        return all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name == "logprobs")
            for name in arrays
        ) and all(getattr(self, name) == getattr(other, name) for name in values)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise EpisodeError(problem)


def _check_arrays(segment: Segment) -> None:
    expected = {
        "token_ids": np.int32,
        "loss_mask": np.bool_,
        "logprobs": np.float32,
        "policy_version": np.int32,
    }
    for name, dtype in expected.items():
        array = getattr(segment, name)
        fits = array.dtype == dtype and array.shape == segment.token_ids.shape and array.ndim == 1
        _require(
            fits,
            f"{name} must be {np.dtype(dtype).name} [{len(segment.token_ids)}], "
            f"got {array.dtype} {list(array.shape)}.",
        )
    unsampled = ~segment.loss_mask
    _require(
        not segment.logprobs[unsampled].any(), "logprobs must be 0 where no token was sampled."
    )
    _require(not (segment.logprobs[segment.loss_mask] > 1e-4).any(), "a log-probability exceeds 0.")


def _check_images(segment: Segment) -> None:
    placeholders = segment.token_ids == segment.placeholder_id
    _require(
        not (placeholders & segment.loss_mask).any(),
        f"the policy sampled the image placeholder {segment.placeholder_id}; ban it in sampling.",
    )
    covered = np.zeros(len(segment), np.bool_)
    end = 0
    for span in segment.images:
        _require(span.offset >= end, f"image spans overlap or are out of order at {span.offset}.")
        end = span.offset + span.length
        _require(end <= len(segment), f"the segment ends inside the image at {span.offset}.")
        features = int(np.prod(span.grid)) // segment.merge**2
        _require(
            span.length == features,
            f"the image at {span.offset} has {span.length} placeholders for {features} features.",
        )
        covered[span.offset : end] = True
    _require(
        bool((covered == placeholders).all()),
        f"{int(placeholders.sum())} placeholders in the tokens, {int(covered.sum())} in the spans.",
    )


def _check_turns(segment: Segment) -> None:
    sampled = np.zeros(len(segment), np.bool_)
    end = 0
    for span in segment.turns:
        _require(
            end <= span.start <= span.end <= len(segment),
            f"turn {span.turn}: {span.start}..{span.end} of {len(segment)} tokens, after {end}.",
        )
        end = span.end
        sampled[span.start : end] = True
    _require(bool((sampled == segment.loss_mask).all()), "the turn spans and loss_mask disagree.")


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange: what the environment showed, what the policy wrote, what came of it.

    Attributes:
        messages: Messages shown before the policy spoke.
        text: The whole turn the policy wrote.
        reward: The reward of the step.
        events: The events of the step.
        finish_reason: Why sampling stopped.
        ask: What the environment asked for; tells the prefix, which was not sampled.
    """

    messages: tuple[Message, ...]
    text: str
    reward: float
    events: tuple[Event, ...]
    finish_reason: FinishReason
    ask: Ask = Ask()  # noqa: RUF009  (a tuple, never changed)


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished episode.

    Attributes:
        env_id: Registered id, version included.
        sample_id: `Sample.id`.
        kind: `Sample.kind`.
        seed: The seed it was reset with.
        group: Index of its group in the batch.
        member: Its place in the group.
        turns: What happened, turn by turn.
        closing: Messages shown after the last turn (usually none).
        segments: Token streams, empty for a policy that deals in text alone.
        terms: Reward terms of the last step by name, unweighted; a reward is paid at the end.
        metrics: Task metrics of the last step.
        status: How it ended.
        reason: Why, for a truncated or an aborted episode; otherwise ``""``.
        truth: Ground truth a person wants beside the episode (question, answers, boxes), JSON-like.

    Raises:
        EpisodeError: If the fields contradict one another.
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
    closing: tuple[Message, ...] = ()
    segments: tuple[Segment, ...] = ()
    terms: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(
            bool(self.reason) == (self.status != "terminated"),
            f"a {self.status} episode with the reason {self.reason!r}.",
        )
        _require(
            self.status != "aborted" or self.reward == 0.0,
            f"an aborted episode with the reward {self.reward}.",
        )
        if self.segments:
            spans = [span.turn for segment in self.segments for span in segment.turns]
            _require(
                spans == list(range(len(self.turns))),
                f"{len(self.turns)} turns, but the segments hold turns {spans}.",
            )
            shown = {image.sha256 for image in self.images}
            named = {span.sha256 for segment in self.segments for span in segment.images}
            _require(named <= shown, "a segment names an image that no message holds.")

    @property
    def reward(self) -> float:
        """The sum of the rewards of its steps."""
        return float(sum(turn.reward for turn in self.turns))

    @property
    def images(self) -> tuple[Image, ...]:
        """Every image shown, in order, repeats included."""
        messages = [message for turn in self.turns for message in turn.messages]
        return tuple(image for message in (*messages, *self.closing) for image in message.images)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return tuple(event for turn in self.turns for event in turn.events)


Group = Sequence[Episode]
"""Episodes of one sample, each played on its own; aborted ones are left out by the sampler."""
