"""Draws distortions that hide the answer, and measures whether the answer is legible.

The world knows the text, the letters and their size, so each letter is compared with its drawing:
a letter is legible if the image has its form (`_LIKENESS`, a normalized cross-correlation) and its
ink differs enough from the ground (`_CONTRAST`). The line is searched over the whole image, because
a program may cut out or enlarge a part. All sizes are searched at half of the resolution, and the
letters are compared at the most likely ones. `benchmarks/arft_readers.py` compares the measure with
tesseract; docs/arft.md has the results.

Strengths come from ranges that were calibrated with readers from outside
(`visenv.envs.arft.coding.world.kinds`). Each picture is also checked by the world's own
measure: at most half of the answer is legible in the image as shown, and all of it in the image
that the reference program repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.images import shrink
from visenv.types import Pixels, QuestionTruth, Sample

from ..ground_truth import Distortion, Legibility
from ..repairs import repaired
from . import kinds
from .canvas import TextBox, glyph, places
from .kinds import Strengths
from .plans import CROP, NONE, Problems

Levels = NDArray[np.float32]

SMALLEST = 4.5
"""Minimum height in pixels of the capitals of a legible line, as the image is shown."""

_HEIGHT = 14
"""Height of a capital at which letters are compared, pixels."""

_MARGIN = 4

_ENLARGED = 4
"""Ratio of the size at which letters are drawn to that at which they are compared."""

_LIKENESS = 0.56

_CONTRAST = 24.0
"""Minimum difference in levels between the ink of a letter and its ground."""

_SHIFT = 2
"""Distance in pixels that a letter may be displaced, because sizes are tried in steps."""

_STEP, _LARGEST = 1.06, 6.0
"""Ratio of the sizes that are searched, and the largest enlargement of a part."""

_LIKELY = 3
"""Number of searched sizes at which letters are compared."""

UNREADABLE = 0.5
"""Largest share of an answer that may be readable before the repair."""

TRIES = 10
"""Number of strengths that are tried before another picture is drawn."""

MARGIN = 320
"""Margin in pixels around the value that the repair is tried on.

The repair of a blur spreads errors at the edges of a part over about 200 pixels.
"""


class _Line(NamedTuple):
    """Holds the drawing of a text: 1 for ink, float32, with a margin; and its letters' boxes."""

    drawing: Levels
    letters: tuple[TextBox, ...]


def share_legible(
    shown: Pixels, text: str, capital: int, scales: Sequence[float], search: bool = False
) -> float:
    """Return the share of a text's letters that are legible in an image, 0 to 1.

    Args:
        shown: The image as it is shown; uint8 ``[height, width, 3]``.
        text: Capitals, digits and blanks; points and colons, which are not compared.
        capital: Height of a capital in the picture, pixels.
        scales: Probable ratios of a length in the shown image to that in the picture.
        search: Whether the image may show an enlarged part, so that larger ratios than the first
            one are searched.
    """
    line = _drawn(text, capital)
    levels = shown.astype(np.float32).mean(axis=2)
    heights = [capital * scale for scale in scales if capital * scale >= SMALLEST]
    if search:
        heights += _likely_heights(levels, line, capital * scales[0])
    best = 0.0
    for height in heights:
        best = max(best, _share_at(levels, line, height))
        if best == 1:
            break
    return best


def _likely_heights(levels: Levels, line: _Line, capital: float) -> list[float]:
    """Return the heights of a capital at which the line is most similar to a part of the image."""
    coarse = _scaled(line.drawing, 0.5)
    searched: list[tuple[float, float]] = []
    height = capital * _STEP
    while height <= capital * _LARGEST:
        if height >= SMALLEST:
            likeness = np.abs(_likeness(_scaled(levels, _HEIGHT / 2 / height), coarse))
            searched.append((float(likeness.max(initial=0)), height))
        height *= _STEP
    return [height for _, height in sorted(searched, reverse=True)[:_LIKELY]]


def _share_at(levels: Levels, line: _Line, height: float) -> float:
    """Return the share of letters that are legible if a capital is this high, pixels."""
    size = line.drawing.shape
    scaled = _scaled(levels, _HEIGHT / height)
    found = _likeness(scaled, line.drawing)
    if not found.size:
        return 0.0
    shares: list[float] = []
    for sign in (-1, 1):  # dark ink on light ground, and the other way
        top, left = np.unravel_index(int((sign * found).argmax()), found.shape)
        area = sign * scaled[top : top + size[0], left : left + size[1]]
        shares.append(float(np.mean([_is_legible(area, line, box) for box in line.letters])))
    return max(shares)


def _scaled(levels: Levels, factor: float) -> Levels:
    from visenv.opencv import cv2

    rows, columns = (max(1, round(side * factor)) for side in levels.shape)
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(levels, (columns, rows), interpolation=how), np.float32)


def _likeness(levels: Levels, drawing: Levels) -> Levels:
    """Return the normalized cross-correlation at each position; none if the drawing is larger."""
    from visenv.opencv import cv2

    if levels.shape[0] < drawing.shape[0] or levels.shape[1] < drawing.shape[1]:
        return np.zeros((0, 0), np.float32)
    found = cv2.matchTemplate(levels, drawing, cv2.TM_CCOEFF_NORMED)
    return np.asarray(np.where(np.isfinite(found), found, 0), np.float32)


def _is_legible(area: Levels, line: _Line, box: TextBox) -> bool:
    """Return whether a letter of the line has its form and its contrast."""
    from visenv.opencv import cv2

    edge = _MARGIN - _SHIFT
    rows, columns = (
        slice(box.top - edge, box.bottom + edge),
        slice(box.left - edge, box.right + edge),
    )
    letter = np.ascontiguousarray(line.drawing[rows, columns])
    around = np.ascontiguousarray(
        area[
            box.top - edge - _SHIFT : box.bottom + edge + _SHIFT,
            box.left - edge - _SHIFT : box.right + edge + _SHIFT,
        ]
    )
    likeness = np.nan_to_num(cv2.matchTemplate(around, letter, cv2.TM_CCOEFF_NORMED))
    top, left = np.unravel_index(int(likeness.argmax()), likeness.shape)
    if not _LIKENESS <= likeness[top, left] <= 1.01:
        return False
    place = around[top : top + letter.shape[0], left : left + letter.shape[1]]
    ink, ground = place[letter > 0.8], place[letter < 0.1]
    return bool(len(ink) and ink.mean() - ground.mean() >= _CONTRAST)


@lru_cache(maxsize=256)
def _drawn(text: str, capital: int) -> _Line:
    """Return the drawing of a text at the height of comparison; blanks and marks have no box.

    The letters are drawn large and shrunk, as those of a picture are. They have the places that
    they have in the picture, where gaps are whole pixels.
    """
    size = _ENLARGED * _HEIGHT
    placed = [
        (round(left * size / capital), letter, glyph(letter, size))
        for left, letter in places(text, capital)
    ]
    across = max(left + ink.shape[1] for left, _, ink in placed)
    margin = _ENLARGED * _MARGIN
    columns = -(-(across + 2 * margin) // _ENLARGED)
    canvas = np.zeros((size + 2 * margin, columns * _ENLARGED, 3), np.uint8)
    boxes: list[TextBox] = []
    for left, letter, ink in placed:
        bottom = margin + max(size, ink.shape[0])
        area = canvas[bottom - ink.shape[0] : bottom, margin + left : margin + left + ink.shape[1]]
        np.maximum(area, ink[:, :, None], out=area)
        right = left + ink.shape[1]
        edges = _MARGIN + left // _ENLARGED, _MARGIN + -(-right // _ENLARGED)
        if letter.isalnum():
            boxes.append(TextBox(edges[0], _MARGIN, edges[1], _MARGIN + _HEIGHT))
    small = shrink(canvas, (columns, _HEIGHT + 2 * _MARGIN))[:, :, 0]
    return _Line(small.astype(np.float32) / np.float32(255), tuple(boxes))


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
