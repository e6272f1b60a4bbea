"""Measures whether the known answer of a picture is legible in an image, without reading it.

The world knows the text, the letters and their size, so each letter is compared with its drawing:
a letter is legible if the image has its form (`_LIKENESS`, a normalized cross-correlation) and its
ink differs enough from the ground (`_CONTRAST`). The line is searched over the whole image, because
a program may cut out or enlarge a part. All sizes are searched at half of the resolution, and the
letters are compared at the most likely ones. `benchmarks/arft_readers.py` compares the measure with
tesseract; docs/arft.md has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.images import shrink
from visenv.types import Pixels

from .canvas import TextBox, glyph, places

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
