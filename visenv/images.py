"""Cutting, and resizing within a pixel budget, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visenv.types import Image, Pixels

if TYPE_CHECKING:
    import PIL.Image

QWEN_PIXELS = 12_845_056
"""16,384 visual tokens of 28x28 pixels: the most a Qwen2.5-VL processor takes by default."""

ARM_PIXELS = 4096 * 28 * 28
"""3,211,264: ``image_max_pixels`` of ARM-Thinker's public SFT recipe."""


class Window(NamedTuple):
    """A box in whole pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def size(self) -> tuple[int, int]:
        """Return ``(width, height)``."""
        return self.right - self.left, self.bottom - self.top

    @classmethod
    def whole(cls, size: tuple[int, int]) -> Window:
        """Return the window of a whole image of that size."""
        return cls(0, 0, *size)

    def inside(self, outer: Window) -> Window:
        """Return this window of a window in the coordinates of `outer`'s image."""
        left, top = outer.left, outer.top
        return Window(left + self.left, top + self.top, left + self.right, top + self.bottom)


def size_within(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """Return the largest ``(width, height)`` of the same aspect that holds at most `max_pixels`."""
    width, height = size
    if width * height <= max_pixels:
        return size
    scale = math.sqrt(max_pixels / (width * height))
    return max(1, int(width * scale)), max(1, min(int(height * scale), max_pixels))


def size_with_long_side(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Return ``(width, height)`` of the same aspect whose longer side is `side` pixels."""
    scale = side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def shrink(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Shrink by averaging areas, so that no detail survives as aliasing.

    Args:
        pixels: uint8 ``[height, width, 3]``.
        size: Target ``(width, height)``, no larger than the source.
    """
    import cv2

    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def fit(image: Image, max_pixels: int, side: int | None = None) -> Image:
    """Return the image itself, or a shrunk copy with at most `max_pixels` pixels.

    Args:
        image: Of any size.
        max_pixels: Most pixels.
        side: Longest side, pixels; None sets no limit.
    """
    size = image.size
    if side is not None and max(size) > side:
        size = size_with_long_side(size, side)
    size = size_within(size, max_pixels)
    return image if size == image.size else image.shrunk(size)


def fit_all(images: Sequence[Image], max_pixels: int) -> list[Image]:
    """Return the images, all shrunk by one factor if they have more than `max_pixels` together.

    Args:
        images: Images of any size.
        max_pixels: Maximum number of pixels of all of them, each repeat counted.
    """
    areas = [image.size[0] * image.size[1] for image in images]
    total = sum(areas)
    if total <= max_pixels:
        return list(images)
    # One pixel is the least that an image can have.
    return [
        fit(image, max(1, area * max_pixels // total))
        for image, area in zip(images, areas, strict=True)
    ]


def scale_window(window: Window, size: tuple[int, int], new_size: tuple[int, int]) -> Window:
    """Return the same part of the image at another size, at least a pixel wide and high."""
    across, down = new_size[0] / size[0], new_size[1] / size[1]
    left = min(round(window.left * across), new_size[0] - 1)
    top = min(round(window.top * down), new_size[1] - 1)
    right = max(round(window.right * across), left + 1)
    bottom = max(round(window.bottom * down), top + 1)
    return Window(left, top, right, bottom)


def cut(image: Image, window: Window) -> PIL.Image.Image:
    """Return the window as a Pillow image: its pixels are copied once, those around it never."""
    import PIL.Image

    rows = np.ascontiguousarray(image.pixels[window.top : window.bottom])
    stride = 3 * image.size[0]
    first, last = 3 * window.left, (len(rows) - 1) * stride + 3 * window.right
    # Pillow's raw decoder steps over what lies between two rows of the window.
    data = rows.reshape(-1)[first:last]
    return PIL.Image.frombuffer("RGB", window.size, data, "raw", "RGB", stride, 1)
