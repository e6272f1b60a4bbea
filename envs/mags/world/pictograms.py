"""Draws the details of degraded scenes: silhouettes of objects, and numbers of two digits.

These details are solid, because lines that are finer than a view pixel would not survive the
degradation. The numbers have the digits 3, 5, 6 and 8, whose outlines differ in small gaps.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.worlds.scenes.details import Canvas, DetailKind, Ink

_OBJECTS: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "house": (((0.5, 0.05), (0.95, 0.5), (0.8, 0.5), (0.8, 0.95), (0.2, 0.95), (0.2, 0.5), (0.05, 0.5)),),
    "tree": (
        ((0.5, 0.05), (0.85, 0.45), (0.68, 0.45), (0.92, 0.75), (0.08, 0.75), (0.32, 0.45), (0.15, 0.45)),
        ((0.42, 0.75), (0.58, 0.75), (0.58, 0.95), (0.42, 0.95)),
    ),
    "fish": (((0.05, 0.5), (0.3, 0.25), (0.6, 0.3), (0.75, 0.47), (0.95, 0.25), (0.95, 0.75), (0.75, 0.53), (0.6, 0.7), (0.3, 0.75)),),
    "cup": (
        ((0.12, 0.2), (0.7, 0.2), (0.62, 0.85), (0.2, 0.85)),
        ((0.66, 0.3), (0.93, 0.3), (0.86, 0.7), (0.6, 0.7), (0.62, 0.58), (0.76, 0.58), (0.8, 0.42), (0.66, 0.42)),
    ),
    "boat": (
        ((0.05, 0.65), (0.95, 0.65), (0.78, 0.92), (0.22, 0.92)),
        ((0.5, 0.08), (0.85, 0.57), (0.5, 0.57)),
        ((0.44, 0.2), (0.44, 0.57), (0.18, 0.57)),
    ),
    "star": (((0.5, 0.03), (0.62, 0.37), (0.98, 0.37), (0.69, 0.59), (0.8, 0.94), (0.5, 0.73), (0.2, 0.94), (0.31, 0.59), (0.02, 0.37), (0.38, 0.37)),),
    "flag": (((0.18, 0.05), (0.28, 0.05), (0.92, 0.3), (0.28, 0.56), (0.28, 0.95), (0.18, 0.95)),),
    "bell": (
        ((0.5, 0.06), (0.68, 0.16), (0.76, 0.4), (0.78, 0.62), (0.94, 0.78), (0.06, 0.78), (0.22, 0.62), (0.24, 0.4), (0.32, 0.16)),
        ((0.4, 0.82), (0.6, 0.82), (0.56, 0.95), (0.44, 0.95)),
    ),
    "car": (
        ((0.04, 0.5), (0.22, 0.45), (0.34, 0.22), (0.7, 0.22), (0.82, 0.45), (0.96, 0.5), (0.96, 0.72), (0.04, 0.72)),
        ((0.16, 0.66), (0.36, 0.66), (0.36, 0.85), (0.16, 0.85)),
        ((0.64, 0.66), (0.84, 0.66), (0.84, 0.85), (0.64, 0.85)),
    ),
    "bolt": (((0.58, 0.03), (0.18, 0.55), (0.46, 0.55), (0.36, 0.97), (0.82, 0.4), (0.54, 0.4), (0.7, 0.03)),),
    "hammer": (((0.1, 0.12), (0.9, 0.12), (0.9, 0.4), (0.58, 0.4), (0.58, 0.95), (0.42, 0.95), (0.42, 0.4), (0.1, 0.4)),),
    "crown": (((0.06, 0.2), (0.3, 0.5), (0.5, 0.12), (0.7, 0.5), (0.94, 0.2), (0.86, 0.88), (0.14, 0.88)),),
}
"""Polygons of each object on the unit square."""

_NUMBERS = tuple("".join(digits) for digits in permutations("3568", 2))

_SHARE = 0.86
"""Side of a drawing as a share of the panel's side."""

_BOLD = 24
"""Side of a panel as a multiple of the width that is added to each side of a digit's strokes."""

_INK = 95
"""Levels between the ink and the panel."""


def _object(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw a silhouette at a place that varies a little."""
    from visenv.opencv import cv2

    mask = np.zeros((canvas.side, canvas.side), np.uint8)
    corner = _corner(rng, canvas.side)
    for polygon in _OBJECTS[answer]:
        points = np.array(polygon) * _SHARE * canvas.side + corner - 0.5
        cv2.fillPoly(mask, [np.round(points * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return _inked(rng, mask)


def _number(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw two digits at a place that varies a little."""
    from PIL import Image as PilImage
    from PIL import ImageDraw

    image = PilImage.new("L", (canvas.side, canvas.side), 0)
    middle = _corner(rng, canvas.side) + _SHARE * canvas.side / 2
    font = _font(canvas.side)
    place = float(middle[0]), float(middle[1])
    stroke = canvas.side // _BOLD
    ImageDraw.Draw(image).text(place, answer, 255, font, "mm", stroke_width=stroke)
    return _inked(rng, np.asarray(image))


@lru_cache(maxsize=32)
def _font(side: int) -> Any:
    from PIL import ImageFont

    left, _, right, _ = ImageFont.load_default(100).getbbox("88")
    return ImageFont.load_default(100 * (_SHARE * side - 2 * (side // _BOLD)) / (right - left))


def _corner(rng: np.random.Generator, side: int) -> NDArray[np.float64]:
    """Return the left upper corner of a drawing."""
    return rng.uniform(0, (1 - _SHARE) * side, 2)


def _inked(rng: np.random.Generator, mask: NDArray[np.uint8]) -> Ink:
    """Return dark or light ink where the mask is set."""
    levels = -_INK if rng.random() < 0.5 else _INK
    return mask.astype(np.float32)[:, :, None] * np.float32(levels / 255)


PICTOGRAMS = {
    "object": DetailKind("What is drawn on {sign}?", tuple(_OBJECTS), _object),
    "number": DetailKind("Which number is on {sign}?", _NUMBERS, _number),
}
