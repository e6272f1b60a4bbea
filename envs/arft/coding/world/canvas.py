"""Draws papers, plates and lines of text on a surface, in colors that every repair restores.

Under darkness and overexposure as they are calibrated, all levels of `PAPER` become one level, and
all levels of `BOARD` become another one. Papers may therefore be shaded within these ranges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import PIL.Image
import PIL.ImageDraw
from numpy.typing import NDArray

from visenv.types import Pixels
from visenv.worlds.draws import pick

from .entries import PictureEntries

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SPACING = 0.16
"""Gap between two letters, relative to the height of a capital."""

_WORD_GAP = 0.55

_CAPITAL = 0.70
"""Height of a capital, relative to the size of PIL's font."""

Color = tuple[int, int, int]

SIDE = 1280
"""Side of every picture in pixels: equal sizes reveal neither the problem nor the rotation."""

EDGE = 96
"""Minimum distance in pixels between the edge of a picture and the value that is asked for."""

SHEET = (34, 26, SIDE - 34, SIDE - 26)
"""Box of a paper that covers the picture except for a narrow border, pixels."""

LARGE, SMALL = (46, 52), (5, 5)
"""Heights of capitals in pixels: readable as the picture is shown, and only after a crop."""

PAPER, BOARD = (219, 249), (64, 93)
"""Ranges of levels of light and of dark grounds."""

_SHADOW = 0.5
"""Darkness of the shadow of a paper."""

_SPREAD = 26
"""Reach of a shadow, pixels."""

# fmt: off
_FILLER = (
    "PLEASE", "KEEP", "THIS", "NOTICE", "DRY", "AND", "RETURN", "LOST", "KEYS", "TO", "THE",
    "DESK", "BEFORE", "EVENING", "BELL",
)

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

# fmt: on


class PictureStyle(NamedTuple):
    """Describes how one picture is drawn.

    Attributes:
        capital: Height of a capital of the entries, pixels.
        ink: Color of the ink: readable without distortion, lost if overexposed.
        ground: Color of the paper or the plates.
    """

    capital: int
    ink: Color
    ground: Color

    @property
    def levels(self) -> tuple[int, int]:
        """Return the range of levels of the ground."""
        return PAPER if self.ground > self.ink else BOARD


def draw_style(rng: np.random.Generator, small: bool, dark: bool) -> PictureStyle:
    """Draw a style with dark ink on light paper, or light ink on a dark board."""
    low, high = SMALL if small else LARGE
    light = _tinted(rng, (226, 240), 9, PAPER)
    deep = _tinted(rng, (62, 78), 8, (50, 86))
    board = _tinted(rng, (70, 86), 10, BOARD)
    ink, ground = (light, board) if dark else (deep, light)
    return PictureStyle(int(rng.integers(low, high + 1)), ink, ground)


def _tinted(
    rng: np.random.Generator, base: tuple[int, int], tint: int, levels: tuple[int, int]
) -> Color:
    drawn = int(rng.integers(*base)) + rng.integers(-tint, tint + 1, 3)
    red, green, blue = (int(level) for level in np.clip(drawn, *levels))
    return red, green, blue


class PictureCanvas:
    """Holds a picture while it is drawn.

    Args:
        surface: The picture without papers, uint8 ``[1280, 1280, 3]``.
        entries: The text.
        style: The colors and the size of letters.

    Attributes:
        found: The position of the answer; None until it is written.
    """

    def __init__(self, surface: Pixels, entries: PictureEntries, style: PictureStyle) -> None:
        self.image = PIL.Image.fromarray(surface)
        self.draw = PIL.ImageDraw.Draw(self.image)
        self.entries = entries
        self.style = style
        self.found: TextBox | None = None

    def lay(self, rng: np.random.Generator, box: tuple[int, int, int, int]) -> None:
        """Lay a paper with its shadow at ``(left, top, right, bottom)``."""
        from visenv.opencv import cv2

        left, top, right, bottom = box
        outer = (
            max(0, left - _SPREAD),
            max(0, top - _SPREAD),
            min(SIDE, right + 2 * _SPREAD),
            min(SIDE, bottom + 2 * _SPREAD),
        )
        around = np.asarray(self.image.crop(outer), np.float32)
        shadow = np.zeros(around.shape[:2], np.float32)
        shift = _SPREAD // 3
        rows = slice(top - outer[1] + shift, bottom - outer[1] + shift)
        shadow[rows, left - outer[0] + shift : right - outer[0] + shift] = _SHADOW
        soft = np.asarray(cv2.GaussianBlur(shadow, (0, 0), _SPREAD / 3), np.float32)
        self.image.paste(_image(around * (1 - soft[:, :, None])), outer[:2])
        self.image.paste(_image(self._paper(rng, right - left, bottom - top)), (left, top))

    def _paper(self, rng: np.random.Generator, across: int, down: int) -> Pixels:
        """Return paper with soft shades and perhaps folds, within the levels of its ground."""
        from visenv.opencv import cv2

        shades = rng.uniform(-7, 7, (4, 4)).astype(np.float32)
        resized = cv2.resize(shades, (across, down), interpolation=cv2.INTER_CUBIC)
        shaded = np.asarray(resized, np.float64)
        for axis, side in enumerate((down, across)):
            if rng.random() < 0.4:
                fold = int(rng.uniform(0.25, 0.75) * side)
                slope = 6 * np.exp(-np.abs(np.arange(side) - fold) / (0.08 * side + 1))
                slope *= np.where(np.arange(side) < fold, -1, 1)
                shaded = shaded + (slope[None, :] if axis else slope[:, None])
        grains = rng.integers(-1, 2, (down, across))
        levels = np.array(self.style.ground) + (shaded + grains)[:, :, None]
        return np.asarray(np.clip(levels, *self.style.levels), np.uint8)

    def entry(
        self, row: int, column: int | None, corner: tuple[int, int], capital: int | None = None
    ) -> TextBox:
        """Write a value, or with None for the column the name of a row; note the answer's place."""
        place = self.write(corner, self.text(row, column), capital)
        if self.entries.is_asked(row, column):
            self.found = place
        return place

    def text(self, row: int, column: int | None) -> str:
        """Return a value, or with None for the column the name of a row."""
        return self.entries.names[row] if column is None else self.entries.values[column][row]

    def write(
        self,
        corner: tuple[int, int],
        text: str,
        capital: int | None = None,
        ink: Color | None = None,
    ) -> TextBox:
        """Write a line in capitals of `capital` pixels; see `lettering.write`."""
        style = self.style
        return write(self.draw, corner, text, capital or style.capital, ink or style.ink)

    def rule(self, left: int, top: int, right: int, bottom: int) -> None:
        """Draw a straight line of the width of a stroke."""
        self.draw.line((left, top, right, bottom), self.style.ink, max(1, self.style.capital // 18))

    def widest(self, column: int | None) -> int:
        """Return the width of the longest text of a column, or of the names, pixels."""
        texts = self.entries.names if column is None else self.entries.values[column]
        return max(width(text, self.style.capital) for text in texts)

    def fill(self, rng: np.random.Generator, left: int, right: int, *gaps: tuple[int, int]) -> None:
        """Write lines of words, with capitals of 20 px, in the given vertical gaps."""
        for upper, lower in gaps:
            for y in range(upper + 30, lower - 40, 54):
                x = left
                while x < right - 200:
                    x = self.write((x, y), pick(rng, _FILLER), 20).right + 18


def _image(levels: NDArray[np.generic]) -> PIL.Image.Image:
    return PIL.Image.fromarray(np.asarray(levels, np.uint8))


def random_edge(rng: np.random.Generator, across: int, edge: int = EDGE) -> int:
    """Return the left edge of a block at a random place, `edge` pixels from the sides."""
    return edge + int(rng.integers(max(1, SIDE - 2 * edge - across + 1)))


def random_corner(
    rng: np.random.Generator, across: int, down: int, edge: int = EDGE
) -> tuple[int, int]:
    """Return the left and upper edge of a block at a random place, `edge` pixels from the sides."""
    left = random_edge(rng, across, edge)
    return left, edge + int(rng.integers(max(1, SIDE - 2 * edge - down + 1)))
