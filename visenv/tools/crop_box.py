"""Computes the crop of a zoom: a box that is large enough to be seen, and its displayed size.

The rules are those of ARM-Thinker, appendix E, and its ``image_zoom_in_tool.py``, and of Qwen's
``smart_resize``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from visenv.images import Window

ThinBoxes = Literal["pad_thin_side", "keep_aspect"]
"""How a box grows if a side is too short: only that side, or both sides in proportion."""

MOST_ASPECT = 100
"""Maximum ratio of the longer side of a box to the shorter side."""

SMALL = 224
"""A crop with a side shorter than this is shown at twice its size."""


def fit_box(
    box: Sequence[float], size: tuple[int, int], min_side: int, thin: ThinBoxes
) -> Window | None:
    """Return the window to cut for a box, in whole pixels, or None if none satisfies the rules.

    The box is clamped to the image, and grows around its center until both sides have `min_side`
    pixels; it is shifted if it would exceed the image. Its edges are rounded outwards.

    ``"keep_aspect"`` is the rule of the public code: it refuses a box that is initially too thin
    (`MOST_ASPECT`), and a box whose long side, after growing in proportion, exceeds the image.
    ``"pad_thin_side"`` only lengthens the short side, to at least a hundredth of the long side, and
    therefore refuses no box in an image whose sides have at least `min_side` pixels.

    Args:
        box: ``[left, top, right, bottom]`` in pixels, fractions allowed.
        size: ``(width, height)`` of the image.
        min_side: Minimum width and height in pixels.
        thin: The rule by which a box grows.
    """
    width, height = size
    left, top = max(0.0, box[0]), max(0.0, box[1])
    right, bottom = min(float(width), box[2]), min(float(height), box[3])
    if not (left < right and top < bottom):
        return None
    across, down = right - left, bottom - top
    if thin == "pad_thin_side":
        across, down = _padded(across, down, min_side), _padded(down, across, min_side)
    elif is_too_thin((across, down)):
        return None
    elif min(across, down) < min_side:
        across, down = _grown(across, down, size, min_side)
    left, right = _placed(left, right, across, width)
    top, bottom = _placed(top, bottom, down, height)
    window = Window(math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom))
    inside = min(window) >= 0  # otherwise the image is too small for the grown box
    large = min(window.size) >= min_side and not is_too_thin(window.size)
    return window if inside and large else None


def _padded(side: float, other: float, min_side: int) -> float:
    return max(side, float(min_side), other / MOST_ASPECT)


def _grown(across: float, down: float, size: tuple[int, int], min_side: int) -> tuple[float, float]:
    """Enlarge both sides by one factor to the minimum, then shrink them to fit the image."""
    ratio = min_side / min(across, down)
    across, down = across * ratio, down * ratio
    if across > size[0]:
        across, down = size[0], down * (size[0] / across)
    if down > size[1]:
        across, down = across * (size[1] / down), size[1]
    return across, down


def _placed(low: float, high: float, length: float, limit: int) -> tuple[float, float]:
    """Return the interval grown to this length around its center, within 0 to `limit`."""
    if length <= high - low:
        return low, high
    start = min(max((low + high) / 2 - length / 2, 0), limit - length)
    return start, min(start + length, limit)


def is_too_thin(size: tuple[float, float]) -> bool:
    """Return whether one side is more than `MOST_ASPECT` times as long as the other.

    The image processors of models fail for such images (Qwen's ``smart_resize`` from a ratio of
    200), and then training fails.
    """
    return max(size) > MOST_ASPECT * min(size)


def enlarged(size: tuple[int, int]) -> tuple[int, int]:
    """Return twice the size if a side is shorter than `SMALL`, otherwise the same size."""
    width, height = size
    return (2 * width, 2 * height) if min(size) < SMALL else size


def smart_size(
    size: tuple[int, int], factor: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """Compute Qwen's ``smart_resize``: sides in multiples of `factor`, pixels within bounds.

    Args:
        size: ``(width, height)``.
        factor: The number of which both sides become multiples.
        min_pixels: Minimum number of pixels.
        max_pixels: Maximum number of pixels.
    """
    pixels = size[0] * size[1]
    rounded = _multiples(size, 1.0, factor, round)
    if rounded[0] * rounded[1] > max_pixels:
        return _multiples(size, math.sqrt(max_pixels / pixels), factor, math.floor)
    if rounded[0] * rounded[1] < min_pixels:
        return _multiples(size, math.sqrt(min_pixels / pixels), factor, math.ceil)
    return rounded


def _multiples(
    size: tuple[int, int], scale: float, factor: int, whole: Callable[[float], int]
) -> tuple[int, int]:
    width, height = (max(1, whole(side * scale / factor)) * factor for side in size)
    return width, height
