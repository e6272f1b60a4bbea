"""Defines segments: append-only token streams as training data, with their invariants.

A trainer that reads segments needs no tokenizer and no chat template: `token_ids` are exactly the
tokens that the policy saw and sampled, with every image placeholder expanded. Images and videos are
referred to by the hash of their pixels and stored once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.errors import EpisodeError
from visenv.types.turn import FinishReason


class TurnSpan(NamedTuple):
    """Locates one sampled turn in its segment: tokens ``start`` to ``end`` (exclusive).

    Attributes:
        turn: The number of the turn in the episode, from 0.
        start: Index of the first token of the turn.
        end: Index of the last token, plus 1.
        finish_reason: Why sampling stopped.
        regex: The regular expression that constrained the sampling, or None. Each token was sampled
            from the tokens that allow a match, and its probability is relative to these tokens.
    """

    turn: int
    start: int
    end: int
    finish_reason: FinishReason
    regex: str | None = None


class PlaceholderRun(NamedTuple):
    """Locates adjacent placeholder tokens.

    Attributes:
        offset: Index of the first one.
        length: The number of placeholder tokens, at least 1.
    """

    offset: int
    length: int

    @property
    def end(self) -> int:
        """Return the index after the last one."""
        return self.offset + self.length


class ImageSpan(NamedTuple):
    """Locates the placeholders of one image in a segment.

    The placeholders of an image are one run (Qwen-VL), or several runs with other tokens in between
    that mark the rows or the tiles of the image (Mistral 3, SmolVLM, InternVL).

    Attributes:
        sha256: The hash of the image's pixels (`Image.sha256`).
        runs: The runs of placeholders, in order.
        placeholder_id: The token id of the placeholders.
        patches: Number of patches that the vision tower reads.
    """

    sha256: str
    runs: tuple[PlaceholderRun, ...]
    placeholder_id: int
    patches: int

    @property
    def offset(self) -> int:
        """Return the index of the first placeholder token."""
        return self.runs[0].offset

    @property
    def length(self) -> int:
        """Return the number of placeholder tokens."""
        return sum(run.length for run in self.runs)


class VideoSpan(NamedTuple):
    """Locates one run of placeholders of a video in a segment.

    Some models represent a video as one run of placeholders (Qwen2.5-VL), others as one run for
    each step of its grid, with text between the runs (Qwen3-VL). In the latter case there is one
    span for each run. For models that only their own processor describes, each run counts as one
    step: `grid` is ``(1, 1, patches)``, and `seconds_per_step` is 0.

    Attributes:
        offset: Index of the first placeholder token.
        length: Number of placeholder tokens, a divisor of the product of `grid`.
        sha256: The hash of the whole video (`Video.sha256`).
        grid: Patches ``(time, height, width)`` of this run.
        placeholder_id: The token id of the placeholders.
        seconds_per_step: Seconds between two steps of the grid's time axis.
        first_step: Index of the run's first step on the time axis of the whole video.
    """

    offset: int
    length: int
    sha256: str
    grid: tuple[int, int, int]
    placeholder_id: int
    seconds_per_step: float
    first_step: int = 0

    @property
    def runs(self) -> tuple[PlaceholderRun, ...]:
        """Return the placeholders as one run, like `ImageSpan.runs`."""
        return (PlaceholderRun(self.offset, self.length),)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Holds one append-only stream of tokens.

    Attributes:
        token_ids: int32 ``[length]``, image placeholders expanded.
        loss_mask: bool ``[length]``, True for the tokens that the policy sampled, including the end
            token.
        logprobs: float32 ``[length]``, natural log under the sampling distribution; 0 outside the
            mask, NaN if the engine returned none.
        policy_version: int32 ``[length]``, the version of the weights that sampled each token; 0
            outside the mask.
        turns: The sampled spans, in order.
        images: The image spans, in order.
        placeholder_ids: All token ids of placeholders of images and videos.
        temperature: The temperature that the tokens were sampled at.
        processor: Fingerprint of the image processor, which detects that a different one is used.
        videos: The video spans, in order.

    Raises:
        EpisodeError: If the fields contradict each other.
    """

    token_ids: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32]
    policy_version: NDArray[np.int32]
    turns: tuple[TurnSpan, ...]
    images: tuple[ImageSpan, ...]
    placeholder_ids: tuple[int, ...]
    temperature: float
    processor: str
    videos: tuple[VideoSpan, ...] = ()

    def __post_init__(self) -> None:
        _check_arrays(self)
        _check_media(self)
        _check_turns(self)

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def spans(self) -> tuple[ImageSpan | VideoSpan, ...]:
        """Return the spans of images and videos, in the order of their tokens."""
        spans: list[ImageSpan | VideoSpan] = [*self.images, *self.videos]
        return tuple(sorted(spans, key=lambda span: span.offset))

    __hash__ = None  # type: ignore[assignment]  # arrays do not hash

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Segment):
            return NotImplemented
        arrays = ("token_ids", "loss_mask", "logprobs", "policy_version")
        values = ("turns", "images", "videos", "placeholder_ids", "temperature", "processor")
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


def _check_media(segment: Segment) -> None:
    placeholders = np.isin(segment.token_ids, segment.placeholder_ids)
    sampled = segment.token_ids[placeholders & segment.loss_mask].tolist()
    _require(
        not sampled,
        f"the policy sampled the placeholders {sorted(set(sampled))} of images or videos; ban them "
        "in sampling.",
    )
    covered = np.zeros(len(segment), np.bool_)
    end = 0
    for image in segment.images:
        _require(bool(image.runs), f"the image {image.sha256} has no placeholders.")
        _require(image.patches > 0, f"the image {image.sha256} has {image.patches} patches.")
    for video in segment.videos:
        patches = math.prod(video.grid)
        _require(
            0 < video.length <= patches and patches % video.length == 0,
            f"the span at {video.offset} has {video.length} placeholders for {patches} patches.",
        )
    for span in segment.spans:
        for run in span.runs:
            _require(
                run.offset >= end and run.length > 0,
                f"media spans overlap or are out of order at {run.offset}.",
            )
            end = run.end
            _require(
                end <= len(segment), f"the segment ends inside the media span at {run.offset}."
            )
            own = segment.token_ids[run.offset : end] == span.placeholder_id
            _require(
                span.placeholder_id in segment.placeholder_ids and bool(own.all()),
                f"the span at {run.offset} has tokens other than its placeholder "
                f"{span.placeholder_id}.",
            )
            covered[run.offset : end] = True
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
