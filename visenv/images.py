"""Crops images, and resizes them to a pixel budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visenv.types import Image, Pixels

if TYPE_CHECKING:
    import PIL.Image

QWEN_PIXELS = 12_845_056
"""16,384 visual tokens of 28x28 pixels: the default maximum of a Qwen2.5-VL processor."""

ARM_PIXELS = 4096 * 28 * 28
"""3,211,264 pixels: ``image_max_pixels`` of ARM-Thinker's public SFT recipe."""


class Window(NamedTuple):
    """Represents a box in whole pixels; right and bottom are exclusive."""

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
        """Return the window that covers a whole image of this size."""
        return cls(0, 0, *size)

    def inside(self, outer: Window) -> Window:
        """Convert this window of a crop to the image from which the window `outer` was cut."""
        left, top = outer.left, outer.top
        return Window(left + self.left, top + self.top, left + self.right, top + self.bottom)


def channels_first(image: Image) -> Pixels:
    """Return a copy of the pixels of an image for a processor of transformers.

    transformers takes an array of any order, and reads one with channels last and a height of 1 or
    3 (from version 5.18 on also 4) as an image with channels first.

    Returns:
        A writable uint8 array ``[3, height, width]``, as PyTorch requires.
    """
    return image.pixels.transpose(2, 0, 1).copy()


def size_within(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """Return the largest ``(width, height)`` of this aspect ratio within `max_pixels` pixels."""
    width, height = size
    if width * height <= max_pixels:
        return size
    scale = math.sqrt(max_pixels / (width * height))
    return max(1, int(width * scale)), max(1, min(int(height * scale), max_pixels))


def size_with_long_side(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Return ``(width, height)`` with this aspect ratio, whose longer side has `side` pixels."""
    scale = side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def shrink(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Shrink an image by averaging areas, which avoids aliasing.

    Args:
        pixels: uint8 ``[height, width, 3]``.
        size: Target ``(width, height)``, no larger than the source.
    """
    from visenv.opencv import cv2

    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def fit(image: Image, max_pixels: int, side: int | None = None) -> Image:
    """Return the image itself, or a shrunk copy with at most `max_pixels` pixels.

    Args:
        image: An image of any size.
        max_pixels: Maximum number of pixels.
        side: Maximum length of the longer side in pixels; None sets no limit.
    """
    size = image.size
    if side is not None and max(size) > side:
        size = size_with_long_side(size, side)
    size = size_within(size, max_pixels)
    return image if size == image.size else image.shrunk(size)


def fit_all(images: Sequence[Image], max_pixels: int) -> list[Image]:
    """Return the images; shrink all by one factor if they exceed `max_pixels` together.

    Args:
        images: Images of any size.
        max_pixels: Maximum number of pixels of all images together; an image that occurs twice
            counts twice.
    """
    areas = [image.size[0] * image.size[1] for image in images]
    total = sum(areas)
    if total <= max_pixels:
        return list(images)
    # An image has at least one pixel.
    return [
        fit(image, max(1, area * max_pixels // total))
        for image, area in zip(images, areas, strict=True)
    ]


def scale_window(window: Window, size: tuple[int, int], new_size: tuple[int, int]) -> Window:
    """Return the same part of the image at another size, at least one pixel wide and high."""
    across, down = new_size[0] / size[0], new_size[1] / size[1]
    left = min(round(window.left * across), new_size[0] - 1)
    top = min(round(window.top * down), new_size[1] - 1)
    right = max(round(window.right * across), left + 1)
    bottom = max(round(window.bottom * down), top + 1)
    return Window(left, top, right, bottom)


def cut(image: Image, window: Window) -> PIL.Image.Image:
    """Return the window as a Pillow image; only the pixels of the window are copied."""
    import PIL.Image

    rows = np.ascontiguousarray(image.pixels[window.top : window.bottom])
    stride = 3 * image.size[0]
    first, last = 3 * window.left, (len(rows) - 1) * stride + 3 * window.right
    # Pillow's raw decoder skips the pixels between two rows of the window.
    data = rows.reshape(-1)[first:last]  # [bytes]
    return PIL.Image.frombuffer("RGB", window.size, data, "raw", "RGB", stride, 1)
