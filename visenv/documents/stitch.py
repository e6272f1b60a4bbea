"""Joins pages side by side in one image, as ARM-Thinker's page tools do.

The numbers are those of the public code (`doc_page_tools.py`) and of the paper's appendix on its
document tools: the long side of a page is at most 1120 px, the gap 8 px, and the image at most 80
megapixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.documents.overview import write_number
from visenv.errors import ConfigurationError
from visenv.images import size_within
from visenv.types import Image, Pixels

LONG_SIDE = 1120
"""Longest side of a page, pixels."""

GAP = 8
"""White columns between two pages."""

_BORDER = 140

MAX_PIXELS = 80_000_000
"""Most pixels of the image; a larger one is shrunk."""


def size_with_side_at_most(size: tuple[int, int], long_side: int) -> tuple[int, int]:
    """Return ``(width, height)`` with the long side at most `long_side`, the other side floored.

    The short side of a very thin page has at least 1 pixel.
    """
    longest = max(size)
    if longest <= long_side:
        return size
    width, height = size
    return max(1, width * long_side // longest), max(1, height * long_side // longest)


def shrink_page(image: Image, long_side: int = LONG_SIDE) -> Image:
    """Return the page with its long side at most `long_side`: bicubic, never enlarged."""
    size = size_with_side_at_most(image.size, long_side)
    return image if size == image.size else Image.from_pixels(_resized(image.pixels, size))


def stitch(
    pages: Sequence[Image],
    *,
    gap: int = GAP,
    long_side: int = LONG_SIDE,
    max_pixels: int = MAX_PIXELS,
    numbers: Sequence[int] = (),
) -> Image:
    """Return the pages from left to right in the given order, vertically centered on white.

    Args:
        pages: At least one page.
        gap: White columns between two pages.
        long_side: Longest side of each page, pixels; larger pages are shrunk, smaller ones are not
            enlarged.
        max_pixels: Most pixels of the result. If width times height exceeds it, both are scaled by
            the square root of ``max_pixels / (width * height)`` and floored.
        numbers: The number of each page; if given, each page has a border and its number above it.
            The public tool shows neither.

    Raises:
        ConfigurationError: If there is no page.
        ImageError: If a page cannot be decoded.
    """
    if not pages:
        raise ConfigurationError("There is no page to stitch; give at least one.")
    shown = [shrink_page(page, long_side).pixels for page in pages]
    if numbers:
        shown = [_numbered(page, number) for page, number in zip(shown, numbers, strict=True)]
    height = max(len(page) for page in shown)
    width = sum(page.shape[1] for page in shown) + gap * (len(shown) - 1)
    canvas = np.full((height, width, 3), 255, np.uint8)
    left = 0
    for page in shown:
        top = (height - len(page)) // 2
        canvas[top : top + len(page), left : left + page.shape[1]] = page
        left += page.shape[1] + gap
    size = size_within((width, height), max_pixels)
    return Image.from_pixels(canvas if size == (width, height) else _resized(canvas, size))


def _numbered(page: Pixels, number: int) -> Pixels:
    """Return the page with a border of 1 px and a strip with its number above it."""
    label = max(10, max(page.shape[:2]) // 28)
    framed = np.full((label + len(page) + 2, page.shape[1] + 2, 3), 255, np.uint8)
    write_number(framed[:label], number)
    framed[label:] = _BORDER
    framed[label + 1 : -1, 1:-1] = page
    return framed


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    import PIL.Image

    source = PIL.Image.fromarray(pixels)
    return np.array(source.resize(size, PIL.Image.Resampling.BICUBIC))
