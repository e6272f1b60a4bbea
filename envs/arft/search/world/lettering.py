"""Writes names on images, as large as possible, in Pillow's own typeface."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import PIL.ImageDraw
import PIL.ImageFont

SMALLEST, LARGEST = 18, 64
"""Smallest and largest size of letters, pixels."""


def draw_lettering(
    draw: PIL.ImageDraw.ImageDraw,
    box: tuple[int, int, int, int],
    text: str,
    color: tuple[int, int, int],
) -> None:
    """Write `text` in the middle of the box, with the line breaks that allow the largest size.

    Args:
        draw: The canvas.
        box: ``(left, top, right, bottom)``, pixels.
        text: At least one word.
        color: RGB levels.
    """
    left, top, right, bottom = box
    size, written = _largest(draw, text, right - left, bottom - top)
    place = ((left + right) / 2, (top + bottom) / 2)
    draw.multiline_text(
        place, written, color, _font(size), "mm", spacing=_gap(size), align="center"
    )


def _largest(draw: PIL.ImageDraw.ImageDraw, text: str, width: int, height: int) -> tuple[int, str]:
    """Return the largest letter size and the text in lines; ties go to the fewest lines."""
    sizes: dict[str, int] = {}
    for written in _broken(text):
        left, top, right, bottom = draw.multiline_textbbox(
            (0, 0), written, _font(LARGEST), spacing=_gap(LARGEST)
        )
        scale = min(width / (right - left), height / (bottom - top), 1.0)
        sizes[written] = max(SMALLEST, int(LARGEST * scale))
    best = max(sizes, key=sizes.__getitem__)
    return sizes[best], best


def _broken(text: str) -> list[str]:
    """Return the text with all combinations of line breaks at blanks, fewest lines first."""
    words = text.split()
    found = []
    for breaks in range(len(words)):
        for places in combinations(range(1, len(words)), breaks):
            ends = (0, *places, len(words))
            lines = (" ".join(words[start:end]) for start, end in pairwise(ends))
            found.append("\n".join(lines))
    return found


def _gap(size: int) -> int:
    return size // 5


@cache
def _font(size: int) -> PIL.ImageFont.FreeTypeFont | PIL.ImageFont.ImageFont:
    return PIL.ImageFont.load_default(size)
