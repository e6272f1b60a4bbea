"""Draws distortions that hide the answer to a question, and that can be repaired.

Strengths come from ranges that were calibrated with readers from outside
(`visenv.envs.arft.coding.world.kinds`). Each picture is also checked by the world's own
measure: at most half of the answer is legible in the image as shown, and all of it in the image
that the reference program repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from visenv.types import Pixels, QuestionTruth, Sample

from ..ground_truth import Distortion, Legibility
from ..repairs import repaired
from . import kinds
from .canvas import TextBox
from .kinds import Strengths
from .plans import CROP, NONE, Problems

UNREADABLE = 0.5
"""Largest share of an answer that may be readable before the repair."""

TRIES = 10
"""Number of strengths that are tried before another picture is drawn."""

MARGIN = 320
"""Margin in pixels around the value that the repair is tried on.

The repair of a blur spreads errors at the edges of a part over about 200 pixels.
"""


class Pictures(Protocol):
    """Draws pictures with questions, and measures their legibility.

    Attributes:
        version: The version of the world; the next one when equal seeds give other samples.
        crops: Whether a picture can have letters that are too small to be read as shown.
        legibility: The test of written images, see `CodingTruth`.
    """

    version: ClassVar[int]
    crops: ClassVar[bool]
    legibility: ClassVar[Legibility]

    def strengths(self, problems: Problems) -> Strengths:
        """Return the ranges of the strengths by the name of the distortion."""
        ...

    def write(self, rng: np.random.Generator) -> Any:
        """Draw the text of a picture and its question, which does not depend on the problems."""
        ...

    def rewrite(self, rng: np.random.Generator, text: Any) -> Any:
        """Return the same question about other values, because some are unreadable if small."""
        ...

    def draw(self, rng: np.random.Generator, text: Any, small: bool) -> Sample:
        """Return a sample with a picture of that text, without distortion."""
        ...

    def share_read(
        self, sample: Sample, pixels: Pixels, place: TextBox | None, native: bool
    ) -> float:
        """Return the share of the answer that is legible, 0 to 1.

        Args:
            sample: The sample with the picture as it was drawn.
            pixels: The current picture, or a part of it; uint8 ``[height, width, 3]``.
            place: The position of the sample's ``target_box`` in `pixels`; None if it has none.
            native: Whether `pixels` are shown at full size; otherwise they are scaled like the
                whole picture.
        """
        ...


def telling_distortions(
    rng: np.random.Generator, pictures: Pictures, sample: Sample, problems: Problems
) -> list[Distortion] | None:
    """Return distortions that hide the answer and can be repaired; None if none were found.

    If the answer stays readable, the distortions are too mild; if it is unreadable after the
    repair, they are too strong. Both results narrow the range of strengths to try next. All
    distortions of a sample have the same relative position in their ranges.

    Args:
        rng: Draws strengths and parameters.
        pictures: The world that the picture is from.
        sample: The sample with the picture, without distortion.
        problems: The problems of the returned picture.
    """
    names = [name for name in problems if name in kinds.KINDS]
    strengths = pictures.strengths(problems)
    low, high = 0.0, 1.0
    for _ in range(TRIES if set(names) - set(kinds.TURNS) else 1):
        share = float(rng.uniform(low, high))
        made = [kinds.draw(name, rng, strengths.get(name), share) for name in names]
        pixels = kinds.apply_all(sample.images[0].pixels, made)
        shown = share_as_shown(pictures, sample, pixels, made)
        if problems == NONE:
            return made if shown == 1 else None
        if shown > UNREADABLE:
            low = share
        elif share_as_repaired(pictures, sample, pixels, made, problems) < 1:
            high = share
        else:
            return made
    return None


def share_as_shown(
    pictures: Pictures, sample: Sample, pixels: Pixels, distortions: Sequence[Distortion]
) -> float:
    """Return the share of the answer that is readable in the image as it is shown, 0 to 1.

    Args:
        pictures: The world that the picture is from.
        sample: The sample with the picture, without distortion.
        pixels: The distorted picture.
        distortions: The distortions of the picture.
    """
    place = _target(sample)
    if place is not None:
        place = kinds.moved(place, sample.images[0].size, distortions)
    return pictures.share_read(sample, pixels, place, native=False)


def share_as_repaired(
    pictures: Pictures,
    sample: Sample,
    pixels: Pixels,
    distortions: Sequence[Distortion],
    problems: Problems,
) -> float:
    """Return the share that is readable, as shown, in the output of the reference program.

    The arguments are those of `share_as_shown`, and the problems.
    """
    place = _target(sample)
    if problems == CROP:
        return pictures.share_read(sample, pixels, place, native=True)
    if place is None:
        return pictures.share_read(sample, repaired(pixels, distortions), None, native=False)
    part, inner = part_around(pixels, place, sample.images[0].size, distortions)
    return pictures.share_read(sample, repaired(part, distortions), inner, native=False)


def part_around(
    pixels: Pixels, place: TextBox, size: tuple[int, int], distortions: Sequence[Distortion]
) -> tuple[Pixels, TextBox]:
    """Return the part of a distorted picture around a place, and the place in the repaired part.

    Args:
        pixels: The distorted picture.
        place: The position in the picture before its distortions.
        size: ``(width, height)`` of the picture before its distortions, pixels.
        distortions: The distortions of the picture, in the order in which they were applied.
    """
    left, top, right, bottom = place
    edge = max(0, left - MARGIN), max(0, top - MARGIN)
    around = TextBox(*edge, min(size[0], right + MARGIN), min(size[1], bottom + MARGIN))
    moved = kinds.moved(around, size, distortions)
    part = pixels[moved.top : moved.bottom, moved.left : moved.right]
    return part, TextBox(left - edge[0], top - edge[1], right - edge[0], bottom - edge[1])


def _target(sample: Sample) -> TextBox | None:
    box = sample.truth_as(QuestionTruth).target_box
    return None if box is None else TextBox(*map(int, box))
