"""Shows several pages of a document in one image: thumbnails of all pages, or pages side by side.

The grid of thumbnails has page numbers. The order is from left to right, then from top to bottom,
from page 1. The paper's prompt describes such an image, but its code does not make one. The grid
and the sizes are therefore ours:

* the pixel budget is that of an image in ARM-Thinker's recipe, 4096 patches of 28 x 28;
* the long side of a thumbnail is the largest with which square thumbnails fit the budget, at most
448 px (20 pages: 381 px; 1,000 pages: 45 px, which shows the layout, but no legible text);
* the number of columns makes the image about as wide as high.

`stitch` joins pages side by side, as ARM-Thinker's page tools do. Its numbers are those of the
public code (`doc_page_tools.py`) and of the paper's appendix on its document tools: the long side
of a page is at most 1120 px, the gap 8 px, and the image at most 80 megapixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from visenv.documents.document import Document, Outlined
from visenv.errors import ConfigurationError, DataError
from visenv.images import ARM_PIXELS, fit, size_within
from visenv.types import Image, Pixels

LARGEST_TILE = 448
GRID_GAP = 6
_BACKGROUND = 205
_BROKEN = 150
_DIGIT_HEIGHT = 21  # pixels, for a digit of OpenCV's plain font at scale 1
_DIGIT_WIDTH = 19

LONG_SIDE = 1120
"""Longest side of a page in a stitched image, pixels."""

PAGE_GAP = 8
"""White columns between two pages."""

_BORDER = 140
"""Gray value of the border of a numbered page."""

STITCHED_PIXELS = 80_000_000
"""Maximum number of pixels of the stitched image; a larger one is shrunk."""


def overview(
    document: Document, *, max_pixels: int = ARM_PIXELS, largest_tile: int = LARGEST_TILE
) -> Image:
    """Return the thumbnails of all pages; a page that cannot be rendered is a crossed-out tile.

    For a document that is `Outlined`, the thumbnails show its outline.

    Args:
        document: A document of at least one page.
        max_pixels: Maximum number of pixels of the result.
        largest_tile: Longest side of a thumbnail in pixels, even if the budget allows more.
    """
    side = tile_side(len(document), max_pixels, largest_tile)
    tiles = [_tile(document, page, side) for page in range(1, len(document) + 1)]
    label = label_height(side)
    cell_width = GRID_GAP + max(tile.shape[1] for tile in tiles)
    cell_height = GRID_GAP + label + max(len(tile) for tile in tiles)
    columns = columns_of(len(tiles), cell_width, cell_height)
    rows = math.ceil(len(tiles) / columns)
    canvas = np.full(
        (rows * cell_height + GRID_GAP, columns * cell_width + GRID_GAP, 3), _BACKGROUND, np.uint8
    )
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        top, left = GRID_GAP + row * cell_height, GRID_GAP + column * cell_width
        cell = canvas[top : top + cell_height - GRID_GAP, left : left + cell_width - GRID_GAP]
        write_number(cell[:label], index + 1)
        inset = (cell.shape[1] - tile.shape[1]) // 2
        cell[label : label + len(tile), inset : inset + tile.shape[1]] = tile
    return fit(Image.from_pixels(canvas), max_pixels)


def tile_side(pages: int, max_pixels: int, largest: int = LARGEST_TILE) -> int:
    """Return the largest side of square thumbnails that fit the budget, at least 8 pixels."""
    side = largest
    while (
        side > 8 and pages * (side + GRID_GAP) * (side + GRID_GAP + label_height(side)) > max_pixels
    ):
        side -= 1
    return side


def columns_of(tiles: int, width: int, height: int) -> int:
    """Return the number of columns that makes the grid about as wide as high."""
    return min(tiles, max(1, round(math.sqrt(tiles * height / width))))


def label_height(side: int) -> int:
    """Return the height of the strip for the page number above a thumbnail, pixels."""
    return max(10, side // 14)


def _tile(document: Document, page: int, side: int) -> Pixels:
    from visenv.opencv import cv2

    show = document.page_outline if isinstance(document, Outlined) else document.page_image
    try:
        return show(page, side).pixels
    except DataError:
        tile = np.full((side, max(1, side * 3 // 4), 3), _BROKEN, np.uint8)
        corner = (tile.shape[1] - 1, side - 1)
        cv2.line(tile, (0, 0), corner, (0, 0, 0))
        cv2.line(tile, (corner[0], 0), (0, corner[1]), (0, 0, 0))
        return tile


def write_number(strip: Pixels, number: int) -> None:
    """Write a page number into the strip above the page, in place."""
    from visenv.opencv import cv2

    height, width = strip.shape[:2]
    text = str(number)
    scale = min((height - 3) / _DIGIT_HEIGHT, width / (_DIGIT_WIDTH * len(text)))
    ink = np.ascontiguousarray(strip)  # OpenCV draws only on contiguous memory
    place = (0, height - 3)
    thickness = max(1, round(scale * 1.5))
    cv2.putText(
        ink, text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, (0, 0, 0), thickness, cv2.LINE_AA
    )
    strip[:] = ink


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
    gap: int = PAGE_GAP,
    long_side: int = LONG_SIDE,
    max_pixels: int = STITCHED_PIXELS,
    numbers: Sequence[int] = (),
) -> Image:
    """Return the pages from left to right in the given order, vertically centered on white.

    Args:
        pages: At least one page.
        gap: White columns between two pages.
        long_side: Longest side of each page, pixels; larger pages are shrunk, smaller ones are not
            enlarged.
        max_pixels: Maximum number of pixels of the result. If width times height exceeds it, both
            are scaled by the square root of ``max_pixels / (width * height)`` and floored.
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
