"""Decides whether an image that a program wrote shows the answer of a procedural sample."""

from __future__ import annotations

from visenv.images import fit
from visenv.types import Image, Sample

from ..ground_truth import CodingTruth
from .canvas import SIDE
from .flags import shows_answer
from .legibility import share_legible
from .plans import CROP

READABLE = 0.9
"""Smallest share of the answer's letters that are legible in a readable image."""


def is_readable(sample: Sample, written: Image | None, max_pixels: int) -> bool | None:
    """Return whether the answer can be read in an image; None for samples of data sets.

    Args:
        sample: The sample, with a `CodingTruth`.
        written: The image that the program wrote, None if it wrote none.
        max_pixels: Maximum number of pixels of a shown image; a larger one is shrunk.
    """
    truth = sample.truth_as(CodingTruth)
    if not truth.legibility:
        return None
    if written is None:
        return False
    shown = fit(written, max_pixels)
    if truth.legibility == "flag":
        return shows_answer(shown.pixels, sample)
    scales = shown.size[0] / written.size[0], min(shown.size) / SIDE
    is_part = truth.problems == CROP or written.size != (SIDE, SIDE)
    share = share_legible(shown.pixels, sample.answers[0], truth.capital, scales, is_part)
    return share >= READABLE
