"""Defines the teachers of a verifier: detector, segmenter, pointing model, judges, reasoner.

Each teacher is a protocol of one or two methods. `visenv.verifier.oracle` implements them from the
ground truth of a procedural world, `visenv.verifier.models` with models behind scorers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from visenv.types import Image, Sample

T = TypeVar("T")

Place = tuple[float, float]
"""x and y in native pixels."""

Box = tuple[float, float, float, float]
"""``(left, top, right, bottom)`` in native pixels; right and bottom are exclusive."""


class FrameReference(NamedTuple):
    """Identifies one image or frame of a sample.

    Attributes:
        frame: The number of the frame, from 0; 0 for an image.
    """

    sample: Sample
    frame: int = 0

    @property
    def image(self) -> Image:
        """Return the image in native size."""
        return self.sample.images[self.frame]


class Detector(Protocol):
    """Turns a label into boxes."""

    async def boxes(self, seen: FrameReference, label: str) -> Sequence[Box]:
        """Return the boxes of all things that match the label; an empty list if there are none."""
        ...


class Segmenter(Protocol):
    """Turns boxes or points into masks."""

    async def hits(
        self,
        seen: FrameReference,
        prompts: Sequence[Box] | Sequence[Place],
        places: Sequence[Place],
    ) -> Sequence[bool]:
        """Return for each place whether its pixel is in the union of the prompts' masks."""
        ...


class PointingModel(Protocol):
    """Turns a label into points, for charts and maps."""

    async def places(self, seen: FrameReference, label: str) -> Sequence[Place]:
        """Return points on all things that match the label; an empty list if there are none."""
        ...


class DescriptionJudge(Protocol):
    """Scores descriptions of frames and spans of a video."""

    async def frame_is(self, seen: FrameReference, description: str) -> bool:
        """Return whether the frame matches the description."""
        ...

    async def span_is(self, sample: Sample, first: int, last: int, description: str) -> bool:
        """Return whether the frames from `first` to `last`, from 0, match the description."""
        ...


class Reasoner(Protocol):
    """Scores how strongly a reasoning supports an answer."""

    async def log_probabilities(
        self, sample: Sample, reasoning: str, answer: str
    ) -> Sequence[float]:
        """Return log P(token | question, reasoning, images) for each token of the answer."""
        ...


class EquivalenceJudge(Protocol):
    """Decides whether two answers have the same meaning."""

    async def are_equivalent(self, sample: Sample, answer: str, truth: str) -> bool:
        """Return whether the answer has the same meaning as the true answer."""
        ...


@dataclass(frozen=True)
class Teachers:
    """Holds the teachers of a verifier.

    Attributes:
        detector: Finds boxes, for points on photographs.
        segmenter: Finds masks, for all points.
        pointing_model: Finds points on charts and maps; if None, the detector is used there, too.
        description_judge: Judges frames and spans of videos; if None, they are not scored.
        reasoner: Scores the reasoning; if None, that term does not apply.
        equivalence_judge: Compares open answers; if None, they are compared exactly.
        are_local: Whether no teacher ever waits; a verification then takes microseconds.
    """

    detector: Detector
    segmenter: Segmenter
    pointing_model: PointingModel | None = None
    description_judge: DescriptionJudge | None = None
    reasoner: Reasoner | None = None
    equivalence_judge: EquivalenceJudge | None = None
    are_local: bool = False

    async def together(self, questions: Iterable[Awaitable[T]]) -> list[T]:
        """Return the answers to all questions; models are asked concurrently."""
        if self.are_local:
            return [await question for question in questions]
        return list(await asyncio.gather(*questions))


def run_local(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits, without an event loop.

    Raises:
        RuntimeError: If the coroutine waits.
    """
    try:
        coroutine.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    coroutine.close()
    raise RuntimeError("A teacher waited, but `are_local` is true.")
