"""Resizing within a pixel budget, the same everywhere."""

from __future__ import annotations

import math

import numpy as np

from visenv.types import Image, Pixels


def size_within(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """The largest ``(width, height)`` of the same aspect that holds at most `max_pixels`."""
    width, height = size
    if width * height <= max_pixels:
        return size
    scale = math.sqrt(max_pixels / (width * height))
    return max(1, int(width * scale)), max(1, min(int(height * scale), max_pixels))


def size_with_long_side(size: tuple[int, int], side: int) -> tuple[int, int]:
    """``(width, height)`` of the same aspect whose longer side is `side` pixels."""
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
    """The image itself, or a shrunk copy with at most `max_pixels` pixels.

    Args:
        image: Of any size.
        max_pixels: Most pixels.
        side: Longest side, pixels; None sets no limit.
    """
    size = image.size
    if side is not None and max(size) > side:
        size = size_with_long_side(size, side)
    size = size_within(size, max_pixels)
    return image if size == image.size else Image.from_pixels(shrink(image.pixels, size))
