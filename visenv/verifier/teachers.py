"""The teachers that a verifier asks: detector, segmenter, pointing model, judges, reasoner.

Each is a protocol of one method or two. `visenv.verifier.oracle` answers from the ground truth of a
procedural world, `visenv.verifier.models` by models behind scorers.
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
    """Names one image or frame of a sample.

    Attributes:
        sample: The sample.
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
        """Return the boxes of everything that the label names; none if there is nothing."""
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
        """Return points on everything that the label names; none if there is nothing."""
        ...


class DescriptionJudge(Protocol):
    """Scores what is said about frames and spans of a video."""

    async def frame_is(self, seen: FrameReference, description: str) -> bool:
        """Return whether the frame shows what is described."""
        ...

    async def span_is(self, sample: Sample, first: int, last: int, description: str) -> bool:
        """Return whether the frames from `first` to `last`, from 0, show what is described."""
        ...


class Reasoner(Protocol):
    """Says how strongly a reasoning supports an answer."""

    async def log_probabilities(
        self, sample: Sample, reasoning: str, answer: str
    ) -> Sequence[float]:
        """Return log P(token | question, reasoning, images) for each token of the answer."""
        ...


class EquivalenceJudge(Protocol):
    """Says whether two answers mean the same."""

    async def are_equivalent(self, sample: Sample, answer: str, truth: str) -> bool:
        """Return whether the answer means what the true answer means."""
        ...


@dataclass(frozen=True)
class Teachers:
    """Holds the teachers of a verifier.

    Attributes:
        detector: For points on photographs.
        segmenter: For all points.
        pointing_model: For charts and maps; None uses the detector there, too.
        description_judge: For frames and spans of videos; None leaves them out.
        reasoner: For the reasoning; None leaves that term out.
        equivalence_judge: For open answers; None compares them exactly.
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
        """Return the answers to all questions, which models are asked at the same time."""
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
    raise RuntimeError("A teacher that is declared local has waited.")
