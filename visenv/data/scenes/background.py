"""Backgrounds: fractal colour noise, light, soft and sharp shapes, sensor grain."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels

_OCTAVES = ((3, 55), (6, 35), (12, 22), (24, 16), (48, 12), (96, 9))
"""Cells along the long side, and amplitude in levels."""

_CHROMA = 0.35
_WORKING_SIDE = 384
"""Backgrounds are painted at this size and enlarged: they are out of focus."""


def paint_background(
    rng: np.random.Generator, width: int, height: int, clutter: float
) -> Pixels:
    """A background, uint8 ``[height, width, 3]``.

    Args:
        rng: Source of all randomness.
        width: Pixels.
        height: Pixels.
        clutter: 0 (a few shapes) to 1 (many).
    """
    import cv2

    scale = min(1.0, _WORKING_SIDE / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    field = _noise(rng, size) + _light(rng, size)
    small = np.clip(field, 8, 247).astype(np.uint8)
    for _ in range(int(rng.integers(3, 8 + round(40 * clutter**2)))):
        _shape(rng, small, clutter)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)


def add_grain(rng: np.random.Generator, pixels: Pixels, deviation: float) -> None:
    """Add sensor noise in place: a random cut of one fixed noise field."""
    import cv2

    height, width = pixels.shape[:2]
    field = _grain(deviation)
    for top in range(0, height, _GRAIN_TILE):
        for left in range(0, width, _GRAIN_TILE):
            tile = pixels[top : top + _GRAIN_TILE, left : left + _GRAIN_TILE]
            down, across = (int(offset) for offset in rng.integers(0, _GRAIN_SPARE, 2))
            cut = field[down : down + tile.shape[0], across : across + tile.shape[1]]
            cv2.addWeighted(tile, 1, cut, 1, -128, dst=tile)


_GRAIN_TILE, _GRAIN_SPARE = 1024, 256


@lru_cache(maxsize=4)
def _grain(deviation: float) -> Pixels:
    side = _GRAIN_TILE + _GRAIN_SPARE
    noise = np.random.default_rng(0).normal(128, deviation, (side, side, 3))
    return np.clip(np.round(noise), 0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator, size: tuple[int, int]) -> NDArray[np.float32]:
    import cv2

    total = np.zeros((size[1], size[0], 3), np.float32)
    for cells, amplitude in _OCTAVES:
        across, down = (max(2, round(cells * side / max(size))) for side in size)
        coarse = rng.uniform(-amplitude, amplitude, (down, across, 3)).astype(np.float32)
        coarse = 1.3 * _muted(coarse, _CHROMA)
        total += cv2.resize(coarse, size, interpolation=cv2.INTER_LINEAR)
    return total


def _light(rng: np.random.Generator, size: tuple[int, int]) -> NDArray[np.float32]:
    """A base colour and a linear gradient in a random direction."""
    across, down = (np.linspace(-1, 1, side, dtype=np.float32) for side in size)
    angle = rng.uniform(0, 2 * np.pi)
    slope = np.cos(angle) * across[None, :] + np.sin(angle) * down[:, None]
    base = _muted(rng.uniform(85, 160, 3), _CHROMA)
    return np.asarray(rng.uniform(10, 45) * slope[:, :, None] + base, np.float32)


def _shape(rng: np.random.Generator, pixels: Pixels, clutter: float) -> None:
    """One ellipse or rotated rectangle of a muted colour."""
    import cv2

    side = max(pixels.shape[:2])
    colour = tuple(int(level) for level in _muted(rng.integers(20, 236, 3), 0.6))
    centre = (int(rng.integers(0, pixels.shape[1])), int(rng.integers(0, pixels.shape[0])))
    axes = tuple(int(axis) for axis in rng.integers(side // 40, side // 9, 2))
    turn = float(rng.uniform(0, 180))
    if rng.random() < 0.5:
        cv2.ellipse(pixels, centre, axes, turn, 0, 360, colour, -1, cv2.LINE_AA)
    else:
        corners = cv2.boxPoints((centre, (2 * axes[0], 2 * axes[1]), turn))
        cv2.fillConvexPoly(pixels, corners.astype(np.int32), colour, cv2.LINE_AA)


def _muted(colour: NDArray[np.generic], chroma: float) -> NDArray[np.float32]:
    """The colour with its distance from grey scaled by `chroma`."""
    levels = np.asarray(colour, np.float32)
    grey = levels.mean(axis=-1, keepdims=True)
    return np.asarray(grey + chroma * (levels - grey), np.float32)
