"""Draws distortions that hide the answer to a question, and that can be repaired.

A distortion that hides nothing needs no repair, and one that destroys the answer cannot be
repaired. `telling_distortions` therefore tries strengths until the reader reads at most half of the
answer in the image as shown, and all of it in the image that the reference program repaired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from visenv.types import Pixels, QuestionTruth, Sample

from ..ground_truth import Distortion
from ..repairs import repaired
from . import kinds
from .lettering import TextBox
from .plans import CROP, NONE, Problems

UNREADABLE = 0.5
"""Largest share of an answer that may be readable before the repair."""

TRIES = 10
"""Number of strengths that are tried before another picture is drawn."""

MARGIN = 64
"""Margin in pixels around the value that the repair is tried on."""


Strengths = tuple[float, float]
"""The mildest and the strongest strength to try, each 0 to 1."""

ALL: Strengths = (0.0, 1.0)


class Pictures(Protocol):
    """Draws pictures with questions, and reads them.

    Attributes:
        crops: Whether a picture can have letters that are too small to be read as shown.
    """

    crops: bool

    def strengths(self, problems: Problems) -> Mapping[str, Strengths]:
        """Return the strengths to try by the name of the distortion; others use the full range."""
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
        """Return the share of the answer that the reader reads, 0 to 1.

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
        pictures: The world that the picture is from, with its reader.
        sample: The sample with the picture, without distortion.
        problems: The problems of the returned picture.
    """
    names = [name for name in problems if name in kinds.KINDS]
    strengths = pictures.strengths(problems)
    low, high = 0.0, 1.0
    for _ in range(TRIES if set(names) - set(kinds.TURNS) else 1):
        share = float(rng.uniform(low, high))
        made = [kinds.draw(name, rng, _between(strengths.get(name, ALL), share)) for name in names]
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
        pictures: The world that the picture is from, with its reader.
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
    left, top, right, bottom = kinds.moved(place, sample.images[0].size, distortions)
    part = pixels[top - MARGIN : bottom + MARGIN, left - MARGIN : right + MARGIN]
    whole = repaired(part, distortions)
    height, width = whole.shape[:2]
    inner = TextBox(MARGIN, MARGIN, width - MARGIN, height - MARGIN)
    return pictures.share_read(sample, whole, inner, native=False)


def _between(strengths: Strengths, share: float) -> float:
    mildest, strongest = strengths
    return mildest + share * (strongest - mildest)


def _target(sample: Sample) -> TextBox | None:
    box = sample.truth_as(QuestionTruth).target_box
    return None if box is None else TextBox(*map(int, box))
