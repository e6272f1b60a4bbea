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

_OBJECTS = {
    "house": ("50,5 95,50 80,50 80,95 20,95 20,50 5,50",),
    "tree": (
        "50,5 85,45 68,45 92,75 8,75 32,45 15,45",
        "42,75 58,75 58,95 42,95",
    ),
    "fish": ("5,50 30,25 60,30 75,47 95,25 95,75 75,53 60,70 30,75",),
    "cup": (
        "12,20 70,20 62,85 20,85",
        "66,30 93,30 86,70 60,70 62,58 76,58 80,42 66,42",
    ),
    "boat": (
        "5,65 95,65 78,92 22,92",
        "50,8 85,57 50,57",
        "44,20 44,57 18,57",
    ),
    "star": ("50,3 62,37 98,37 69,59 80,94 50,73 20,94 31,59 2,37 38,37",),
    "flag": ("18,5 28,5 92,30 28,56 28,95 18,95",),
    "bell": (
        "50,6 68,16 76,40 78,62 94,78 6,78 22,62 24,40 32,16",
        "40,82 60,82 56,95 44,95",
    ),
    "car": (
        "4,50 22,45 34,22 70,22 82,45 96,50 96,72 4,72",
        "16,66 36,66 36,85 16,85",
        "64,66 84,66 84,85 64,85",
    ),
    "bolt": ("58,3 18,55 46,55 36,97 82,40 54,40 70,3",),
    "hammer": ("10,12 90,12 90,40 58,40 58,95 42,95 42,40 10,40",),
    "crown": ("6,20 30,50 50,12 70,50 94,20 86,88 14,88",),
}
"""Polygons of each object, as x,y in percent of its side."""

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
        places = np.array([point.split(",") for point in polygon.split()], float) / 100
        points = places * _SHARE * canvas.side + corner - 0.5
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
