"""Paints the background of the signs: a landscape, a brick wall, a street at night, or shelves.

Every painter paints at half size or less and enlarges the result, so that it looks out of focus.
Its colors are much less saturated than those of signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels
from visenv.worlds.scenes.background import muted, paint_background

Painter = Callable[[np.random.Generator, int, int, float], Pixels]
"""Paints a background, uint8 ``[height, width, 3]``, from width, height and clutter (0 to 1)."""


def _bricks(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint a wall of bricks with stains; each row is shifted."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(120, 170, 3), 0.2))
    mortar, down, across = 2, int(rng.integers(14, 26)), int(rng.integers(34, 60))
    earth = muted(rng.uniform((95, 60, 45), (150, 110, 95)), 0.6)
    for row, top in enumerate(range(0, painting.shape[0], down)):
        for left in range(-(row % 2) * across // 2, painting.shape[1], across):
            shade = earth * rng.uniform(0.75, 1.2)
            corner = (left + across - mortar, top + down - mortar)
            cv2.rectangle(painting, (left + mortar, top + mortar), corner, _ink(shade), -1)
    for _ in range(round(20 * clutter)):
        _blot(rng, painting, muted(rng.uniform(70, 150, 3), 0.2))
    return _enlarged(painting, width, height)


def _night(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint a row of dark houses with lit windows below a dark sky, and lamps."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(28, 52, 3), 0.5))
    left = 0
    while left < painting.shape[1]:
        across = int(rng.integers(50, 130))
        top = int(painting.shape[0] * rng.uniform(0.15, 0.6))
        wall = muted(rng.uniform(34, 64, 3), 0.4)
        cv2.rectangle(painting, (left, top), (left + across, painting.shape[0]), _ink(wall), -1)
        for y in range(top + 10, painting.shape[0] - 12, 24):
            for x in range(left + 8, left + across - 12, 20):
                if rng.random() < 0.2 + 0.4 * clutter:
                    glow = muted(rng.uniform((120, 105, 60), (200, 180, 130)), 0.5)
                    cv2.rectangle(painting, (x, y), (x + 8, y + 12), _ink(glow), -1)
        left += across
    for _ in range(round(2 + 6 * clutter)):
        place = [int(rng.integers(size)) for size in (painting.shape[1], painting.shape[0])]
        cv2.circle(painting, place, int(rng.integers(4, 9)), (205, 196, 170), -1, cv2.LINE_AA)
    return _enlarged(painting, width, height)


def _shelves(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint shelves with boxes of different sizes."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(150, 200, 3), 0.15))
    wood = _ink(muted(rng.uniform((90, 65, 45), (150, 120, 95)), 0.5))
    down = int(rng.integers(60, 100))
    for floor in range(down, painting.shape[0] + down, down):
        left = 0
        while left < painting.shape[1]:
            across = int(rng.integers(12, 60))
            if rng.random() < 0.4 + 0.5 * clutter:
                top = floor - int(rng.integers(down // 3, down - 8))
                corner = (left + across - 3, floor)
                box = _ink(muted(rng.uniform(50, 215, 3), 0.45))
                cv2.rectangle(painting, (left, top), corner, box, -1)
            left += across
        cv2.rectangle(painting, (0, floor), (painting.shape[1], floor + 5), wood, -1)
    return _enlarged(painting, width, height)


STYLES: Final[Mapping[str, Painter]] = {
    "landscape": paint_background,
    "bricks": _bricks,
    "night": _night,
    "shelves": _shelves,
}
"""The painter of each style, by name."""


def _canvas(width: int, height: int, color: NDArray[np.float32]) -> Pixels:
    scale = min(0.5, 768 / max(width, height))
    canvas = np.empty((max(2, round(height * scale)), max(2, round(width * scale)), 3), np.uint8)
    canvas[:] = color.astype(np.uint8)
    return canvas


def _blot(rng: np.random.Generator, painting: Pixels, color: NDArray[np.float32]) -> None:
    """Paint a soft stain, blended in equal parts with the pixels below it."""
    from visenv.opencv import cv2

    over = painting.copy()
    place = [int(rng.integers(size)) for size in (painting.shape[1], painting.shape[0])]
    axes = rng.integers(8, 60, 2).tolist()
    cv2.ellipse(over, place, axes, float(rng.uniform(0, 180)), 0, 360, _ink(color), -1)
    cv2.addWeighted(painting, 0.6, over, 0.4, 0, dst=painting)


def _enlarged(painting: Pixels, width: int, height: int) -> Pixels:
    from visenv.opencv import cv2

    blurred = cv2.GaussianBlur(painting, (5, 5), 1.1)
    resized = cv2.resize(blurred, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def _ink(color: NDArray[np.float32]) -> tuple[int, int, int]:
    red, green, blue = (int(level) for level in np.clip(color, 0, 255))
    return red, green, blue
