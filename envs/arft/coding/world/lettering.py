"""Draws lines of capitals and digits in solid ink, with gaps between the letters."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visenv.types import Pixels

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SPACING = 0.16
"""Gap between two letters, relative to the height of a capital."""
_WORD_GAP = 0.55
_CAPITAL = 0.70
"""Height of a capital, relative to the size of PIL's font."""


class TextBox(NamedTuple):
    """Holds the position of a text, in whole pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


def write(
    draw: ImageDraw, corner: tuple[int, int], text: str, height: int, ink: tuple[int, int, int]
) -> TextBox:
    """Write a line, and return its position.

    Args:
        draw: The canvas of the picture.
        corner: The left and upper edge of the line.
        text: Capitals, digits, blanks, points and colons.
        height: The height of a capital, pixels.
        ink: The color.
    """
    left, top = corner
    ascent = _extent("H", height)[1]
    offsets, across = _layout(text, height)
    for letter, offset in offsets:
        draw.text((left + offset, top - ascent), letter, ink, _font(height))
    return TextBox(left, top, left + across, top + height)


def width(text: str, height: int) -> int:
    """Return the width of a line, pixels."""
    return _layout(text, height)[1]


@lru_cache(maxsize=256)
def _layout(text: str, height: int) -> tuple[tuple[tuple[str, int], ...], int]:
    """Return the letters with their offsets from the left edge of the line, and its width."""
    gap = max(1, round(_SPACING * height))
    offsets: list[tuple[str, int]] = []
    x = 0
    for letter in text:
        if letter == " ":
            x += round(_WORD_GAP * height)
            continue
        left, _, right, _ = _extent(letter, height)
        offsets.append((letter, x - left))
        x += right - left + gap
    return tuple(offsets), x - gap


def places(text: str, height: int) -> list[tuple[int, str]]:
    """Return the left edge of each letter of a line, pixels, and the letter; blanks have none."""
    return [
        (offset + _extent(letter, height)[0], letter) for letter, offset in _layout(text, height)[0]
    ]


@lru_cache(maxsize=64)
def glyph(letter: str, height: int) -> Pixels:
    """Return the image of a letter, 255 on 0, cropped to the letter: uint8 ``[height, width]``."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (3 * height, 3 * height))
    ImageDraw.Draw(image).text((height // 2, height // 2), letter, 255, _font(height))
    pixels = np.asarray(image)
    rows, columns = (np.flatnonzero(pixels.max(axis=axis) > 127) for axis in (1, 0))
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


@lru_cache(maxsize=64)
def _font(height: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(height / _CAPITAL)


@lru_cache(maxsize=1024)
def _extent(letter: str, height: int) -> tuple[int, int, int, int]:
    left, top, right, bottom = _font(height).getbbox(letter)
    return int(left), int(top), int(right), int(bottom)
