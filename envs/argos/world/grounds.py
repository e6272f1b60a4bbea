"""Draws the ground of a scene: a tint, a gradient of light, and a texture."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.worlds.draws import pick

from .presets import WorldPreset
from .things import FrameSize

TINTS: tuple[tuple[int, int, int], ...] = (
    (176, 160, 160),
    (160, 176, 160),
    (160, 160, 180),
    (178, 176, 152),
    (174, 158, 178),
    (154, 176, 178),
)
"""Tints of the background of a scene; the tint may be a shortcut to the answer."""

Levels = NDArray[np.float32]


class Ground(NamedTuple):
    """Holds the ground behind the things, which all frames of a video share.

    Attributes:
        levels: The levels of the pixels, float32 ``[height, width, 3]``.
        shadow: How far a shadow is below and to the right of its thing, native pixels, or None.
    """

    levels: Levels
    shadow: tuple[int, int] | None


def draw_ground(
    rng: np.random.Generator, preset: WorldPreset, tint: int, is_sheet: bool = False
) -> Ground:
    """Return a random ground.

    Args:
        rng: The generator.
        preset: The size, the textures, and whether things have shadows.
        tint: An index of `TINTS`.
        is_sheet: Whether the ground is a plain sheet, for charts and maps.
    """
    extent = FrameSize(preset.width, preset.height)
    slope = rng.uniform(-18, 18, 2)
    down, across = np.mgrid[-1 : 1 : extent.height * 1j, -1 : 1 : extent.width * 1j]
    light = (slope[0] * down + slope[1] * across)[:, :, None]
    levels = np.asarray(light + np.array(TINTS[tint], np.float32), np.float32)
    if len(preset.grounds) > 1 and not is_sheet:
        grain = TEXTURES[pick(rng, preset.grounds)](rng, extent)
        levels += (grain - grain.mean())[:, :, None]
    far = preset.radius[0] // 3
    shadow = (int(rng.integers(2, far + 1)), int(rng.integers(-far, far + 1)))
    return Ground(levels, shadow if preset.shadows and not is_sheet else None)


def _plain(rng: np.random.Generator, extent: FrameSize) -> Levels:
    return np.zeros((extent.height, extent.width), np.float32)


def _planks(rng: np.random.Generator, extent: FrameSize) -> Levels:
    """Return boards with seams, shades of their own, and grain along them."""
    board = max(6, extent.height // int(rng.integers(6, 11)))
    rows, columns = np.mgrid[0 : extent.height, 0 : extent.width]
    number = rows // board
    shade = rng.uniform(-8, 8, int(number.max()) + 1)[number]
    grain = 3 * np.sin(rows * 1.7 + 2 * np.sin(columns / (0.15 * extent.width)))
    return np.asarray(np.where(rows % board < 2, -16.0, shade + grain), np.float32)


def _tiles(rng: np.random.Generator, extent: FrameSize) -> Levels:
    """Return square tiles with joints and shades of their own."""
    side = max(8, extent.height // int(rng.integers(4, 8)))
    rows, columns = np.mgrid[0 : extent.height, 0 : extent.width]
    shades = rng.uniform(-7, 7, (extent.height // side + 1, extent.width // side + 1))
    joint = (rows % side < 2) | (columns % side < 2)
    return np.asarray(np.where(joint, -14.0, shades[rows // side, columns // side]), np.float32)


def _grass(rng: np.random.Generator, extent: FrameSize) -> Levels:
    """Return spots of two sizes."""
    total = np.zeros((extent.height, extent.width), np.float32)
    for size, most in ((3, 9.0), (11, 7.0)):
        spots = rng.uniform(-most, most, (extent.height // size + 1, extent.width // size + 1))
        spread = spots.repeat(size, axis=0).repeat(size, axis=1)
        total += spread[: extent.height, : extent.width].astype(np.float32)
    return total


def _fabric(rng: np.random.Generator, extent: FrameSize) -> Levels:
    """Return a weave of diagonal threads."""
    thread = int(rng.integers(3, 7))
    rows, columns = np.mgrid[0 : extent.height, 0 : extent.width]
    over = ((rows + columns) // thread + (rows - columns) // thread) % 2
    return np.asarray(12.0 * over, np.float32)


TEXTURES: dict[str, Callable[[np.random.Generator, FrameSize], Levels]] = {
    "plain": _plain,
    "planks": _planks,
    "tiles": _tiles,
    "grass": _grass,
    "fabric": _fabric,
}
"""The textures of the ground by their names."""
