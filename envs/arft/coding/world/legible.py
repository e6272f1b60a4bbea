"""Tests whether the value in question can be read in an image, as shown and once repaired.

A distortion that hides nothing needs no repair, and one that destroys cannot be repaired.
`telling_distortions` draws strengths until neither holds: the reader reads half of the answer or
less in the image as it is shown, and all of it in what the reference program makes of it.
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
"""Largest share of an answer that may be read before the repair."""

TRIES = 10
"""Strengths that are tried before a picture is drawn again."""

MARGIN = 64
"""Pixels around what is asked about that a repair is tried on."""


Strengths = tuple[float, float]
"""The mildest and the strongest that are tried, each 0 to 1."""

ALL: Strengths = (0.0, 1.0)


class Pictures(Protocol):
    """Pictures that are asked about, with a reader that knows how to read them.

    Attributes:
        crops: Whether a picture can be drawn with letters too small to be read as it is shown.
    """

    crops: bool

    def strengths(self, problems: Problems) -> Mapping[str, Strengths]:
        """Return the strengths that are tried by the name of the distortion; others have all."""
        ...

    def write(self, rng: np.random.Generator) -> Any:
        """Return what a picture says: its question does not depend on what is wrong with it."""
        ...

    def rewrite(self, rng: np.random.Generator, text: Any) -> Any:
        """Return the same question about other values: some cannot be read in small letters."""
        ...

    def draw(self, rng: np.random.Generator, text: Any, small: bool) -> Sample:
        """Return a picture of that text, with nothing wrong."""
        ...

    def share_read(
        self, sample: Sample, pixels: Pixels, place: TextBox | None, native: bool
    ) -> float:
        """Return the share of the answer that the reader reads, 0 to 1.

        Args:
            sample: The picture as it was drawn.
            pixels: The picture as it is now, or a part of it; uint8 ``[height, width, 3]``.
            place: Where the ``target_box`` of the sample is in `pixels`; None if it has none.
            native: Whether `pixels` are shown as they are; otherwise they are shown as small as
                the whole picture.
        """
        ...


def telling_distortions(
    rng: np.random.Generator, pictures: Pictures, sample: Sample, problems: Problems
) -> list[Distortion] | None:
    """Return distortions whose repair matters; None if none were found for this picture.

    A distortion that leaves the answer readable is too mild, and one after whose repair it cannot
    be read is too strong: either narrows the strengths that are tried next. All distortions of a
    sample are equally far between their mildest and their strongest.

    Args:
        rng: Draws strengths and parameters.
        pictures: Where the picture is from.
        sample: The picture, with nothing wrong.
        problems: What is to be wrong with it.
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
    """Return the share of the answer that is read in the image as it is shown, 0 to 1.

    Args:
        pictures: Where the picture is from.
        sample: The picture, with nothing wrong.
        pixels: The picture, distorted.
        distortions: What was done to it.
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
    """Return the share that is read once the reference program has run, as it is then shown.

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
