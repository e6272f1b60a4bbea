"""Implements exact teachers, which answer from the ground truth of a procedural world.

``noise`` is the rate of wrong verdicts, to simulate real teachers. The errors depend only on the
question and a seed, so that scoring an episode again gives the same result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.types import Sample
from visenv.verifier.outcome import matches, options_of
from visenv.verifier.teachers import Box, FrameReference, Place, Teachers

_DOUBT = 1e-3
"""Probability of an answer that does not follow from the reasoning."""


class WorldTruth(Protocol):
    """Describes the ground truth of a procedural sample: its things, its events and its answer."""

    def owners(self, frame: int) -> NDArray[np.int8]:
        """Return the number of the thing at each pixel, -1 for none, int8 ``[height, width]``."""
        ...

    def visible(self, frame: int) -> Sequence[int]:
        """Return the numbers of the things with at least one visible pixel."""
        ...

    def named(self, frame: int, label: str) -> Sequence[int]:
        """Return the numbers of the visible things that match a label."""
        ...

    def box(self, frame: int, number: int) -> Box:
        """Return the box around the visible pixels of a thing."""
        ...

    def supports(self, first: int, last: int, description: str) -> bool:
        """Return whether the frames from `first` to `last` match the description."""
        ...

    def happens(self, frame: int, description: str) -> bool:
        """Return whether the event of the description happens in a frame."""
        ...

    def entailed(self, reasoning: str) -> str | None:
        """Return the answer that follows from a reasoning, or None."""
        ...

    def intervals(self) -> Sequence[tuple[int, int, str]]:
        """Return the first frame, the last frame (from 0) and the description of each event."""
        ...


@dataclass(frozen=True)
class TeacherNoise:
    """Decides which questions get a wrong answer.

    Args:
        rate: Share of wrong answers, 0 to 1.
        seed: Seed of the decisions.
    """

    rate: float = 0.0
    seed: int = 0

    def strikes(self, *question: object) -> bool:
        """Return whether a question gets a wrong answer."""
        if not self.rate:
            return False
        return self.draw(*question) < self.rate

    def draw(self, *question: object) -> float:
        """Return a number from 0 to 1 that depends only on the question and the seed."""
        text = repr((self.seed, question)).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64


@dataclass(frozen=True)
class OracleDetector:
    """Returns the boxes of the things that match a label. Noise shifts a box by its own width."""

    noise: TeacherNoise = TeacherNoise()

    async def boxes(self, seen: FrameReference, label: str) -> Sequence[Box]:
        """Return the boxes."""
        truth = world_truth(seen.sample)
        boxes = [truth.box(seen.frame, number) for number in truth.named(seen.frame, label)]
        if self.noise.strikes("boxes", seen.sample.id, seen.frame, label):
            return [
                (left - (right - left), top, left, bottom) for left, top, right, bottom in boxes
            ]
        return boxes


@dataclass(frozen=True)
class OracleSegmenter:
    """Returns whether places lie in the masks of boxes or points.

    The mask of a box is the part of a thing that is inside the box, for the thing whose own box
    overlaps the given box most. The mask of a point is the thing at that pixel. Noise inverts a
    verdict.
    """

    noise: TeacherNoise = TeacherNoise()

    async def hits(
        self,
        seen: FrameReference,
        prompts: Sequence[Box] | Sequence[Place],
        places: Sequence[Place],
    ) -> Sequence[bool]:
        """Return the verdicts."""
        truth = world_truth(seen.sample)
        owners = truth.owners(seen.frame)
        masks = [self._mask(truth, seen.frame, owners, prompt) for prompt in prompts]
        verdicts: list[bool] = []
        for x, y in places:
            owner = int(owners[math.floor(y), math.floor(x)])
            hit = any(
                owner == number
                and box[0] <= math.floor(x) < box[2]
                and box[1] <= math.floor(y) < box[3]
                for number, box in masks
            )
            verdicts.append(hit != self.noise.strikes("hit", seen.sample.id, seen.frame, x, y))
        return verdicts

    def _mask(
        self,
        truth: WorldTruth,
        frame: int,
        owners: NDArray[np.int8],
        prompt: Box | Place,
    ) -> tuple[int, Box]:
        """Return the number of a thing, -2 for none, and the box that limits its mask."""
        height, width = owners.shape
        if len(prompt) == 2:
            x, y = math.floor(prompt[0]), math.floor(prompt[1])
            inside = 0 <= x < width and 0 <= y < height
            number = int(owners[y, x]) if inside else -1
            return (number if number >= 0 else -2), (0, 0, width, height)
        visible = truth.visible(frame)
        overlaps = {number: _overlap(truth.box(frame, number), prompt) for number in visible}
        best = max(overlaps, key=lambda number: overlaps[number], default=-2)
        return (best if overlaps.get(best, 0.0) > 0 else -2), prompt


@dataclass(frozen=True)
class OraclePointingModel:
    """Returns one pixel of each thing that matches a label. Noise returns other pixels."""

    noise: TeacherNoise = TeacherNoise()

    async def places(self, seen: FrameReference, label: str) -> Sequence[Place]:
        """Return the pixel closest to the middle of each thing that matches the label."""
        truth = world_truth(seen.sample)
        if self.noise.strikes("places", seen.sample.id, seen.frame, label):
            return [(0.0, 0.0)]
        return [inner_pixel(truth, seen.frame, each) for each in truth.named(seen.frame, label)]


@dataclass(frozen=True)
class OracleDescriptionJudge:
    """Compares descriptions with the events of the world. Noise inverts a verdict."""

    noise: TeacherNoise = TeacherNoise()

    async def frame_is(self, seen: FrameReference, description: str) -> bool:
        """Return whether the described event happens in the frame."""
        truth = world_truth(seen.sample)
        struck = self.noise.strikes("frame", seen.sample.id, seen.frame, description)
        return truth.happens(seen.frame, description) != struck

    async def span_is(self, sample: Sample, first: int, last: int, description: str) -> bool:
        """Return whether the span matches the described event."""
        truth = world_truth(sample)
        struck = self.noise.strikes("span", sample.id, first, last, description)
        return truth.supports(first, last, description) != struck


@dataclass(frozen=True)
class OracleReasoner:
    """Scores answers by the one that follows from the reasoning. Noise inverts the verdict."""

    noise: TeacherNoise = TeacherNoise()

    async def log_probabilities(
        self, sample: Sample, reasoning: str, answer: str
    ) -> Sequence[float]:
        """Return ``[log 1]`` for the answer that follows, ``[log 0.001]`` for any other."""
        truth = world_truth(sample)
        entailed = truth.entailed(reasoning)
        follows = entailed is not None and matches(answer, entailed, options_of(sample))
        struck = self.noise.strikes("answer", sample.id, reasoning, answer)
        return [0.0 if follows != struck else math.log(_DOUBT)]


def oracle_teachers(noise: float = 0.0, seed: int = 0) -> Teachers:
    """Return exact teachers for samples whose ground truth is a `WorldTruth`.

    Args:
        noise: Share of wrong verdicts of each teacher, 0 to 1.
        seed: Seed of the wrong verdicts.
    """
    shared = TeacherNoise(noise, seed)
    return Teachers(
        detector=OracleDetector(shared),
        segmenter=OracleSegmenter(),
        pointing_model=OraclePointingModel(shared),
        description_judge=OracleDescriptionJudge(shared),
        reasoner=OracleReasoner(shared),
        are_local=True,
    )


def world_truth(sample: Sample) -> WorldTruth:
    """Return the ground truth of a procedural sample.

    Raises:
        ConfigurationError: If the ground truth of the sample is not a `WorldTruth`.
    """
    truth = sample.ground_truth
    if not hasattr(truth, "owners"):
        raise ConfigurationError(
            f"Exact teachers need a procedural sample, but {sample.id!r} has the ground truth "
            f'{type(truth).__name__}. Name teachers, or use reward="outcome".'
        )
    world: WorldTruth = truth
    return world


def inner_pixel(truth: WorldTruth, frame: int, number: int) -> Place:
    """Return the center of the pixel of a thing that is closest to the mean of its pixels."""
    rows, columns = np.nonzero(truth.owners(frame) == number)
    distances = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
    best = int(distances.argmin())
    return float(columns[best]) + 0.5, float(rows[best]) + 0.5


def _overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the intersection over union of two boxes."""
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    if across <= 0 or down <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return across * down / (sum(areas) - across * down)
