"""Draws details in lines that are finer than a view pixel, and removes them from the view.

A detail is ink on a gray panel. `hide` subtracts from the ink the part that remains after the image
is shrunk to the view. Every view pixel of the panel then has the same mean for all answers: the
view shows nothing, and the native pixels show the ink with a faint halo. Vision science calls such
figures vanishing optotypes (Howland, Ginsburg and Campbell, "High-pass spatial frequency letters as
clinical optotypes", Vision Research 1978).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ink = NDArray[np.float32]
"""float32 ``[side, side, 3]``, or 1 channel for gray ink: levels to add to the panel's gray."""

PANEL = 110
"""Gray level of every panel, near the middle, so that lines can be lighter or darker."""

_DARK, _LIGHT = 26, 246
"""Darkest and lightest level of a detail; both leave room for grain."""

GRAIN_ROOM = 255 - _LIGHT
"""Largest amplitude of grain. A larger one would be clipped, differently for each color, and tint
the view."""

_ROUNDS = 2
_LINE = Fraction(1, 3)
"""Width of a stripe, view px."""

_COLORS = {
    "red": (_LIGHT, _DARK, _DARK),
    "green": (_DARK, _LIGHT, _DARK),
    "blue": (_DARK, _DARK, _LIGHT),
    "yellow": (_LIGHT, _LIGHT, _DARK),
    "cyan": (_DARK, _LIGHT, _LIGHT),
    "magenta": (_LIGHT, _DARK, _LIGHT),
}
# fmt: off
_TEXTS = (
    "BANK", "BOAT", "CAFE", "DOCK", "EXIT", "FARM", "FIRE", "GATE", "GOLD", "HALL", "HILL",
    "JAZZ", "KIWI", "LAKE", "LIFT", "MILK", "MOON", "PARK", "PIER", "POST", "ROSE", "SALE",
    "SHOP", "SWIM", "TAXI", "TRAM", "ZONE", "108", "264", "375", "490", "612",
)
# fmt: on


class Canvas(NamedTuple):
    """Describes the area in which a detail is drawn.

    Attributes:
        side: Native pixels of the square panel.
        unit: Native pixels per view pixel.
        stripe_period: Distance between the starts of two stripes, view px.
    """

    side: int
    unit: Fraction
    stripe_period: int


class DetailKind(NamedTuple):
    """Describes one kind of detail.

    Attributes:
        question: The question, with ``{sign}`` in place of the sign's name.
        options: All possible answers.
        draw: Makes the ink of an answer, before the ink is hidden from the view.
    """

    question: str
    options: tuple[str, ...]
    draw: Callable[[np.random.Generator, str, Canvas], Ink]


def hide(ink: Ink, unit: Fraction) -> Ink:
    """Return the ink without the part that the view shows, so that every view pixel's mean is 0.

    Let ``A`` be the matrix that averages native pixels into view pixels along one side. The view of
    the ink is ``A ink A'``. Subtracting ``B (A ink A') B'``, where ``B`` is the pseudo-inverse of
    ``A``, returns the nearest ink whose view is 0.

    Args:
        ink: The drawing; each side is a whole number of view pixels.
        unit: Native pixels per view pixel.
    """
    averaging, inverse = _view_matrices(ink.shape[0], unit)
    return np.asarray(ink - _apply(inverse, _apply(averaging, ink)), np.float32)


def engrave(
    rng: np.random.Generator, ink: Ink, unit: Fraction, contrast: float
) -> NDArray[np.uint8]:
    """Return the panel with the hidden ink, as strong as its range of levels permits.

    The hidden inks and the inks within the range are two convex sets. Alternate projections onto
    both sets approach their intersection. The last projection is the hiding one; the remaining
    excess over the range is negligible. Levels are rounded up or down at random, in proportion to
    their fractions: rounding to the nearest level would shift the mean of a view pixel if many of
    its pixels were rounded in the same direction.

    Args:
        rng: Rounds the levels at random.
        ink: The drawing; each side is a whole number of view pixels.
        unit: Native pixels per view pixel.
        contrast: 0 to 1.

    Returns:
        uint8, of the shape of `ink`.
    """
    hidden = hide(ink, unit)
    for _ in range(_ROUNDS):
        hidden = hide(np.clip(hidden, _DARK - PANEL, _LIGHT - PANEL), unit)
    dither = rng.random(hidden.shape, np.float32)
    return np.clip(PANEL + contrast * hidden + dither, 0, 255).astype(np.uint8)


def _apply(matrix: NDArray[np.float32], image: Ink) -> Ink:
    """Return ``matrix @ channel @ matrix.T`` for each color channel."""
    # [side, side, 3] becomes [side, 3 * side], so that one product has [rows, 3 * side].
    rows = np.matmul(matrix, image.reshape(image.shape[0], -1))
    # [rows, side, 3], so that the second product is [rows, rows, 3].
    return np.asarray(np.matmul(matrix, rows.reshape(len(matrix), *image.shape[1:])), np.float32)


@lru_cache(maxsize=32)
def _view_matrices(side: int, unit: Fraction) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the matrix that averages native pixels, ``[view, side]``, and its pseudo-inverse."""
    edges = np.arange(int(side / unit) + 1) * float(unit)
    pixels = np.arange(side)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    averaging = np.clip(overlap, 0, None) / float(unit)
    return averaging.astype(np.float32), np.linalg.pinv(averaging).astype(np.float32)


# ---------------------------------------------------------------------------------------- color


def _stripes(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw stripes, a third of a view pixel wide, which have the answer's color after hiding.

    Hiding subtracts the mean of the view pixel, a third of the stripe's level, from the stripe. The
    stripe is drawn 3/2 times as strong, so that the result has the levels of the color.
    """
    color = (np.array(_COLORS[answer], np.float32) - PANEL) / float(1 - _LINE)
    ink = np.empty((canvas.side, canvas.side, 3), np.float32)
    ink[:] = _stripe_coverage(canvas)[:, None, None] * color
    # [side, side, 3] with rows and columns swapped, for stripes in the other direction.
    return ink if rng.random() < 0.5 else np.ascontiguousarray(ink.swapaxes(0, 1))


@lru_cache(maxsize=32)
def _stripe_coverage(canvas: Canvas) -> NDArray[np.float32]:
    """Return the share of each native pixel of a column that lies on a stripe, 0 to 1."""
    unit = float(canvas.unit)
    period, width = unit * canvas.stripe_period, unit * float(_LINE)
    start = (canvas.stripe_period // 2 + (1 - float(_LINE)) / 2) * unit

    def inked_up_to(position: NDArray[np.float64]) -> NDArray[np.float64]:
        turns, rest = np.divmod(position, period)
        return turns * width + np.clip(rest - start, 0, width)

    coverage = np.diff(inked_up_to(np.arange(canvas.side + 1, dtype=np.float64)))
    return np.asarray(coverage, np.float32)


# --------------------------------------------------------------------- text, count and relation


def _text(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw hollow letters across the panel's width; the outline is finer than a view pixel."""
    from PIL import Image as PilImage
    from PIL import ImageDraw

    font, pen = _font(answer, canvas), _pen(canvas)
    image = PilImage.new("L", (canvas.side, canvas.side), 0)
    draw = ImageDraw.Draw(image)
    middle = (canvas.side / 2, canvas.side / 2)
    draw.text(middle, answer, 255, font, "mm", stroke_width=pen, stroke_fill=255)
    draw.text(middle, answer, 0, font, "mm")
    return _as_ink(np.asarray(image), rng)


@lru_cache(maxsize=256)
def _font(answer: str, canvas: Canvas) -> Any:
    from PIL import ImageFont

    width: float = ImageFont.load_default(100).getbbox(answer)[2]
    return ImageFont.load_default(90 * (canvas.side - 2 * _pen(canvas)) // int(width))


def _rings(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw the number of rings of the answer, in cells of a 3x3 grid."""
    from visenv.opencv import cv2

    mask = np.zeros((canvas.side, canvas.side), np.uint8)
    cell = canvas.side / 3
    for slot in rng.permutation(9)[: int(answer)]:
        row, column = divmod(int(slot), 3)
        jitter = rng.uniform(-0.12, 0.12, 2) * cell
        center = ((column + 0.5) * cell + jitter[0], (row + 0.5) * cell + jitter[1])
        cv2.circle(mask, _fixed(center), round(cell * 0.28 * 16), 255, _pen(canvas), cv2.LINE_AA, 4)
    return _as_ink(mask, rng)


def _pair(rng: np.random.Generator, answer: str, canvas: Canvas) -> Ink:
    """Draw a triangle and a circle of the same height side by side."""
    from visenv.opencv import cv2

    mask = np.zeros((canvas.side, canvas.side), np.uint8)
    side, pen = canvas.side, _pen(canvas)
    height = rng.uniform(0.42, 0.58) * side
    triangle, circle = (0.27, 0.73) if answer == "left" else (0.73, 0.27)
    radius = 0.17 * side
    cv2.circle(mask, _fixed((circle * side, height)), round(radius * 16), 255, pen, cv2.LINE_AA, 4)
    corners = [(triangle * side + x * radius, height + y * radius) for x, y in _TRIANGLE]
    points = np.array([_fixed(corner) for corner in corners], np.int32)
    cv2.polylines(mask, [points], True, 255, pen, cv2.LINE_AA, 4)
    return _as_ink(mask, rng)


_TRIANGLE = ((0.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


def _fixed(point: tuple[float, float]) -> tuple[int, int]:
    """Return a point in cv2's fixed-point coordinates of 4 fractional bits."""
    return round((point[0] - 0.5) * 16), round((point[1] - 0.5) * 16)


def _pen(canvas: Canvas) -> int:
    return max(1, round(0.45 * canvas.unit))


def _as_ink(mask: NDArray[np.uint8], rng: np.random.Generator) -> Ink:
    """Return dark or light lines where the mask is set."""
    levels = -220.0 if rng.random() < 0.5 else 220.0
    return mask.astype(np.float32)[:, :, None] * np.float32(levels / 255)


KINDS = {
    "colour": DetailKind("What colour are the stripes on {sign}?", tuple(_COLORS), _stripes),
    "text": DetailKind("What is written on {sign}?", _TEXTS, _text),
    "count": DetailKind("How many rings are on {sign}?", tuple("123456"), _rings),
    "relation": DetailKind(
        "On {sign}, is the triangle to the left or to the right of the circle?",
        ("left", "right"),
        _pair,
    ),
}
