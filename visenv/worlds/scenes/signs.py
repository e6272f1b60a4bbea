"""Draws signs: plates with a colored frame, whose shape and color are visible in the view."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels

FRAMES = {
    "orange": (255, 140, 0),
    "red": (205, 28, 34),
    "green": (20, 140, 60),
    "blue": (24, 72, 190),
    "yellow": (245, 205, 20),
    "purple": (120, 40, 150),
    "white": (240, 240, 236),
    "black": (22, 22, 26),
}

# Corners on the unit square; the circle has none.
SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((0, 0), (1, 0), (1, 1), (0, 1)),
    "round": (),
    "diamond": ((0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)),
}

_ROOM = {"square": 1.0, "round": math.sqrt(2), "diamond": 2.0}
"""Ratio of the inner side of the shape to the side of the square panel inside it."""


class Box(NamedTuple):
    """Represents a box in whole view pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    def native(self, unit: Fraction) -> tuple[int, int, int, int]:
        """Return ``(left, top, right, bottom)`` in native pixels."""
        left, top, right, bottom = (int(edge * unit) for edge in self)
        return left, top, right, bottom


class Sign(NamedTuple):
    """Describes a sign and its place.

    Attributes:
        frame: Name of the color of its frame.
        shape: Name of its shape.
        box: The box around it.
        panel: The square inside it that holds the detail.
    """

    frame: str
    shape: str
    box: Box
    panel: Box

    @property
    def name(self) -> str:
        """Return the sign's name in questions."""
        return f"the {self.frame} {self.shape} sign"


def outer_side(shape: str, detail: int, frame: int, grid: int) -> int:
    """Return the side of a sign in view px; margins around the panel are multiples of `grid`."""
    edge = frame * (2.0 if shape == "square" else 2.4)
    side = detail * _ROOM[shape] + edge
    margin = math.ceil((side - detail) / 2 / grid) * grid
    return detail + 2 * margin


def draw_plate(pixels: Pixels, sign: Sign, frame_width: int, unit: Fraction, gray: int) -> None:
    """Draw the sign at its box: the frame, then the plate inside it."""
    left, top, right, bottom = sign.box.native(unit)
    region = pixels[top:bottom, left:right]
    inset = float(frame_width * unit) / (right - left)
    _fill(region, sign.shape, 0.0, FRAMES[sign.frame])
    _fill(region, sign.shape, inset, (gray, gray, gray))


def draw_post(pixels: Pixels, sign: Sign, unit: Fraction, length: int) -> None:
    """Draw a post from the sign's middle to `length` view px below the sign."""
    from visenv.opencv import cv2

    left, top, right, bottom = sign.box.native(unit)
    width = max(1, (right - left) // 12)
    middle, end = (left + right) // 2, min(pixels.shape[0], bottom + int(length * unit))
    shades = np.array([70, 120, 150, 130, 84, 52], np.uint8)[None, :, None].repeat(3, 2)
    start = (top + bottom) // 2
    post = cv2.resize(shades, (width, end - start), interpolation=cv2.INTER_LINEAR)
    pixels[start:end, middle - width // 2 : middle - width // 2 + width] = post


def _fill(region: Pixels, shape: str, inset: float, color: tuple[int, int, int]) -> None:
    from visenv.opencv import cv2

    side = region.shape[0]
    corners = SHAPES[shape]
    if not corners:
        center = round((side / 2 - 0.5) * 16)
        radius = round(side * (0.5 - inset) * 16)
        cv2.circle(region, (center, center), radius, color, -1, cv2.LINE_AA, 4)
        return
    if shape == "square":
        edge = round(inset * side)
        region[edge : side - edge, edge : side - edge] = color
        return
    points = np.array([[0.5 + (v - 0.5) * (1 - 2 * inset) for v in corner] for corner in corners])
    cv2.fillConvexPoly(region, _fixed(points * side), color, cv2.LINE_AA, 4)


def _fixed(points: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.asarray(np.round((points - 0.5) * 16), np.int32)
