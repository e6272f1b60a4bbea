"""Draws pages and signs: square pictures of one size, with solid ink in large or small letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visenv.types import Pixels
from visenv.worlds.draws import pick
from visenv.worlds.scenes.background import paint_background

from .entries import COUNT, PictureEntries
from .lettering import TextBox, width, write

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIDE = 1280
"""Side of every picture in pixels: equal sizes reveal neither the problem nor the rotation."""

EDGE = 96
"""Minimum distance in pixels between the edge of a picture and the value that is asked for."""

LARGE, SMALL = (46, 52), (5, 5)
"""Heights of capitals in pixels: readable as the picture is shown, and only after a crop."""

# fmt: off
_FILLER = (
    "PLEASE", "KEEP", "THIS", "NOTICE", "DRY", "AND", "RETURN", "LOST", "KEYS", "TO", "THE",
    "DESK", "BEFORE", "EVENING", "BELL",
)
# fmt: on
_CELL = SIDE // 2


class PictureStyle(NamedTuple):
    """Describes how one picture is drawn.

    Attributes:
        capital: Height of a capital of the entries, pixels.
        ink: Color of the ink: readable without distortion, lost if overexposed.
        ground: Color of the paper or the plates.
    """

    capital: int
    ink: tuple[int, int, int]
    ground: tuple[int, int, int]


def draw_picture(
    rng: np.random.Generator, entries: PictureEntries, small: bool
) -> tuple[Pixels, TextBox]:
    """Return a picture, uint8 ``[1280, 1280, 3]``, and the position of the value asked for.

    Args:
        rng: Draws everything except the text.
        entries: The text.
        small: Whether the letters are too small to be read as the picture is shown.
    """
    style = _style(rng, small)
    return _DRAWN[entries.style](rng, entries, style)


def _style(rng: np.random.Generator, small: bool) -> PictureStyle:
    low, high = SMALL if small else LARGE
    red, green, blue = (int(level) for level in int(rng.integers(55, 85)) + rng.integers(-8, 9, 3))
    tint = int(rng.integers(208, 238)) + rng.integers(-14, 15, 3)
    ground = int(tint[0]), int(tint[1]), int(tint[2])
    return PictureStyle(int(rng.integers(low, high + 1)), (red, green, blue), ground)


def _draw_page(
    rng: np.random.Generator, entries: PictureEntries, style: PictureStyle
) -> tuple[Pixels, TextBox]:
    """Draw a page with a heading, a table of the entries, and lines of other text around it."""
    from PIL import Image, ImageDraw

    page = Image.new("RGB", (SIDE, SIDE), style.ground)
    draw = ImageDraw.Draw(page)
    capital = style.capital
    write(draw, (EDGE, 110), f"NOTICE {int(rng.integers(10, 100))}", 52, style.ink)
    line, column = round(2.2 * capital), round(9.5 * capital)
    across = column + max(width(value, capital) for value in entries.values)
    left = int(rng.integers(EDGE, max(EDGE, SIDE - EDGE - across) + 1))
    top = int(rng.integers(240, SIDE - EDGE - COUNT * line - 100))
    found = TextBox(0, 0, 0, 0)
    for row, (name, value) in enumerate(zip(entries.names, entries.values, strict=True)):
        y = top + row * line
        write(draw, (left, y), name, capital, style.ink)
        place = write(draw, (left + column, y), value, capital, style.ink)
        rule = y + round(1.55 * capital)
        draw.line((left, rule, left + across, rule), style.ink, max(1, capital // 18))
        found = place if row == entries.asked else found
    _fill(rng, draw, style, (200, top - capital), (top + COUNT * line + capital, SIDE - EDGE))
    return np.asarray(page), found


def _fill(
    rng: np.random.Generator, draw: ImageDraw, style: PictureStyle, *gaps: tuple[int, int]
) -> None:
    """Draw lines of words, with capitals of 20 px, in the given vertical gaps."""
    for upper, lower in gaps:
        for y in range(upper + 30, lower - 40, 54):
            x = EDGE
            while x < SIDE - 3 * EDGE:
                x = write(draw, (x, y), pick(rng, _FILLER), 20, style.ink).right + 18


def _draw_signs(
    rng: np.random.Generator, entries: PictureEntries, style: PictureStyle
) -> tuple[Pixels, TextBox]:
    """Draw a landscape with four plates on posts, one in each quarter."""
    from PIL import Image, ImageDraw

    scene = Image.fromarray(paint_background(rng, SIDE, SIDE, 0.6))
    draw = ImageDraw.Draw(scene)
    found = TextBox(0, 0, 0, 0)
    for quarter in range(COUNT):
        corner = (quarter % 2) * _CELL, (quarter // 2) * _CELL
        place = _draw_sign(
            rng, draw, corner, entries.names[quarter], entries.values[quarter], style
        )
        found = place if quarter == entries.asked else found
    return np.asarray(scene), found


def _draw_sign(
    rng: np.random.Generator,
    draw: ImageDraw,
    corner: tuple[int, int],
    name: str,
    value: str,
    style: PictureStyle,
) -> TextBox:
    """Draw a plate with two lines in its quarter; return the position of the value."""
    lines, capital = (name, value), style.capital
    while max(width(line, capital) for line in lines) > _CELL - 2 * EDGE:
        capital -= 1
    widths = [width(line, capital) for line in lines]
    across, down = max(widths) + 2 * capital, round(5 * capital)
    free = _CELL - across - 2 * (EDGE - capital), _CELL - down - 2 * EDGE
    left = corner[0] + EDGE - capital + int(rng.integers(free[0] + 1))
    top = corner[1] + EDGE + int(rng.integers(free[1] + 1))
    post = max(2, capital // 4)
    middle = left + across // 2
    draw.rectangle((middle - post, top + down, middle + post, corner[1] + _CELL), (96, 92, 88))
    box = (left, top, left + across, top + down)
    draw.rounded_rectangle(box, capital // 2, style.ground, style.ink, max(1, capital // 8))
    for row, (line, wide) in enumerate(zip(lines, widths, strict=True)):
        at = left + (across - wide) // 2, top + round((0.9 + 2 * row) * capital)
        place = write(draw, at, line, capital, style.ink)
    return place


_DRAWN = {"page": _draw_page, "signs": _draw_signs}
