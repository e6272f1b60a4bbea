"""Shows all pages of a document in one image: a grid of thumbnails with page numbers.

The order is from left to right, then from top to bottom, from page 1. The paper's prompt describes
such an image, but its code does not make one. The grid and the sizes are therefore ours:

* the pixel budget is that of an image in ARM-Thinker's recipe, 4096 patches of 28 x 28;
* the long side of a thumbnail is the largest with which square thumbnails fit the budget, at most
448 px (20 pages: 381 px; 1,000 pages: 45 px, which shows the layout, but no legible text);
* the number of columns makes the image about as wide as high.
"""

from __future__ import annotations

import math

import numpy as np

from visenv.documents.document import Document, Outlined
from visenv.errors import DataError
from visenv.images import ARM_PIXELS, fit
from visenv.types import Image, Pixels

LARGEST_TILE = 448
GAP = 6
_BACKGROUND = 205
_BROKEN = 150
_DIGIT_HEIGHT = 21  # pixels, for a digit of OpenCV's plain font at scale 1
_DIGIT_WIDTH = 19


def overview(
    document: Document, *, max_pixels: int = ARM_PIXELS, largest_tile: int = LARGEST_TILE
) -> Image:
    """Return the thumbnails of all pages; a page that cannot be rendered is a crossed-out tile.

    For a document that is `Outlined`, the thumbnails show its outline.

    Args:
        document: A document of at least one page.
        max_pixels: Most pixels of the result.
        largest_tile: Longest side of a thumbnail in pixels, even if the budget allows more.
    """
    side = tile_side(len(document), max_pixels, largest_tile)
    tiles = [_tile(document, page, side) for page in range(1, len(document) + 1)]
    label = label_height(side)
    cell_width = GAP + max(tile.shape[1] for tile in tiles)
    cell_height = GAP + label + max(len(tile) for tile in tiles)
    columns = columns_of(len(tiles), cell_width, cell_height)
    rows = math.ceil(len(tiles) / columns)
    canvas = np.full(
        (rows * cell_height + GAP, columns * cell_width + GAP, 3), _BACKGROUND, np.uint8
    )
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        top, left = GAP + row * cell_height, GAP + column * cell_width
        cell = canvas[top : top + cell_height - GAP, left : left + cell_width - GAP]
        write_number(cell[:label], index + 1)
        inset = (cell.shape[1] - tile.shape[1]) // 2
        cell[label : label + len(tile), inset : inset + tile.shape[1]] = tile
    return fit(Image.from_pixels(canvas), max_pixels)


def tile_side(pages: int, max_pixels: int, largest: int = LARGEST_TILE) -> int:
    """Return the largest side of square thumbnails that fit the budget, at least 8 pixels."""
    side = largest
    while side > 8 and pages * (side + GAP) * (side + GAP + label_height(side)) > max_pixels:
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
