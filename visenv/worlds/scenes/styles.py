"""Paints the background of the signs, in one of several styles.

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


def _beach(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint a beach: the sky, the sea with waves, and sand with towels and parasols."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform((170, 190, 210), (195, 215, 235)), 0.6))
    down, across = painting.shape[:2]
    sea, sand = int(down * rng.uniform(0.12, 0.25)), int(down * rng.uniform(0.35, 0.5))
    water = muted(rng.uniform((70, 120, 140), (100, 150, 170)), 0.7)
    cv2.rectangle(painting, (0, sea), (across, down), _ink(water), -1)
    for _ in range(60):
        start = int(rng.integers(across)), int(rng.integers(sea, sand))
        end = start[0] + int(rng.integers(10, 60)), start[1]
        cv2.line(painting, start, end, _ink(water * rng.uniform(1.1, 1.4)), 2)
    ground = muted(rng.uniform((185, 165, 125), (215, 195, 155)), 0.8)
    cv2.rectangle(painting, (0, sand), (across, down), _ink(ground), -1)
    for _ in range(round(12 + 30 * clutter)):
        place = int(rng.integers(across)), int(rng.integers(sand, down))
        color = _ink(muted(rng.uniform(60, 220, 3), 0.45))
        if rng.random() < 0.5:
            corner = place[0] + int(rng.integers(14, 30)), place[1] + int(rng.integers(6, 12))
            cv2.rectangle(painting, place, corner, color, -1)
        else:
            reach = int(rng.integers(10, 24))
            cv2.line(painting, place, (place[0], place[1] + 2 * reach), (120, 105, 90), 2)
            cv2.ellipse(painting, place, (reach, reach // 2), 0, 180, 360, color, -1, cv2.LINE_AA)
    return _enlarged(painting, width, height)


def _snow(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint a slope with snow: firs, the nearer the larger, and tracks."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(185, 215, 3), 0.3))
    down, across = painting.shape[:2]
    shade = muted(rng.uniform((150, 160, 175), (170, 180, 195)), 0.6)
    for _ in range(int(rng.integers(2, 5))):
        knots = [(int(rng.integers(-20, across)), int(rng.integers(down))) for _ in range(2)]
        for shift in (0, 7):
            start, end = ((x + shift, y) for x, y in knots)
            cv2.line(painting, start, end, _ink(shade), 2, cv2.LINE_AA)
    for top in np.sort(rng.uniform(0, 0.95, round(20 + 60 * clutter))):
        left, tall = int(rng.integers(across)), int(18 + 50 * top)
        green = muted(rng.uniform((40, 60, 50), (70, 90, 75)), 0.5)
        for floor in range(3):
            tip = int(top * down) + floor * tall // 4
            reach = (floor + 2) * tall // 9
            corners = [
                (left, tip),
                (left - reach, tip + tall // 2),
                (left + reach, tip + tall // 2),
            ]
            cv2.fillConvexPoly(painting, np.array(corners, np.int32), _ink(green), cv2.LINE_AA)
    return _enlarged(painting, width, height)


def _tiles(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint a floor of square tiles; each has two triangles in some of four colors."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(150, 190, 3), 0.2))
    colors = muted(rng.uniform(70, 210, (4, 3)), 0.4)
    side = int(rng.integers(26, 44))
    for top in range(0, painting.shape[0], side):
        for left in range(0, painting.shape[1], side):
            right, bottom = left + side - 2, top + side - 2
            corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
            first = int(rng.integers(4)) if rng.random() < clutter else 0
            for start in (first, first + 2):
                triangle = [corners[(start + step) % 4] for step in range(3)]
                shade = colors[int(rng.integers(4))] * rng.uniform(0.9, 1.1)
                cv2.fillConvexPoly(painting, np.array(triangle, np.int32), _ink(shade))
    return _enlarged(painting, width, height)


def _market(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Paint rows of stalls: striped awnings above crates of fruit."""
    from visenv.opencv import cv2

    painting = _canvas(width, height, muted(rng.uniform(95, 130, 3), 0.2))
    down = int(rng.integers(90, 130))
    for top in range(0, painting.shape[0], down):
        left = -int(rng.integers(40))
        while left < painting.shape[1]:
            across = int(rng.integers(90, 160))
            pair = [_ink(muted(rng.uniform(60, 215, 3), 0.45)), (206, 202, 194)]
            for stripe, edge in enumerate(range(left, left + across - 10, 10)):
                corner = edge + 9, top + down // 4
                cv2.rectangle(painting, (edge, top), corner, pair[stripe % 2], -1)
            for crate in range(left + 4, left + across - 40, 38):
                floor = top + down - 8
                cv2.rectangle(
                    painting, (crate, floor - 26), (crate + 34, floor), (128, 108, 84), -1
                )
                fruit = muted(rng.uniform(60, 200, 3), 0.5)
                for _ in range(round(4 + 14 * clutter)):
                    place = crate + int(rng.integers(4, 31)), floor - int(rng.integers(16, 32))
                    shade = _ink(fruit * rng.uniform(0.85, 1.15))
                    cv2.circle(painting, place, 5, shade, -1, cv2.LINE_AA)
            left += across
    return _enlarged(painting, width, height)


STYLES: Final[Mapping[str, Painter]] = {
    "landscape": paint_background,
    "bricks": _bricks,
    "night": _night,
    "shelves": _shelves,
    "beach": _beach,
    "snow": _snow,
    "tiles": _tiles,
    "market": _market,
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
