"""Draws the pixels of a frame: the ground, and things with their textures and shadows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels
from visenv.worlds.draws import pick

from .presets import WorldPreset
from .things import PALETTE, FrameSize, Thing, owners, silhouette

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

_EDGE = 0.6

_TEXTURE = 0.55

_SHADE = 0.72
"""Brightness of what lies in a shadow, relative to the light."""


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


def paint(
    things: tuple[Thing, ...], extent: FrameSize, ground: Ground, rng: np.random.Generator
) -> Pixels:
    """Return a frame, uint8 ``[height, width, 3]``.

    Args:
        things: The things from back to front.
        extent: Size of the frame.
        ground: The ground behind the things.
        rng: Draws the noise.
    """
    levels = ground.levels.copy()
    shown = owners(things, extent)
    for number, thing in enumerate(things):
        if thing.shape == "region":
            mine = shown == number
            rows, columns = np.nonzero(mine)
            levels[mine] = _texture(thing, rows, columns)
            continue
        # A shadow of a thing outside the frame, or behind the wall, would show where it is.
        if ground.shadow and thing.shape != "bar" and (shown == number).any():
            down, across = ground.shadow
            shaded = replace(thing, x=thing.x + across, y=thing.y + down)
            rows_of, columns_of, inside = silhouette(shaded, extent)
            levels[rows_of, columns_of][inside] *= _SHADE
        rows_of, columns_of, inside = silhouette(thing, extent)
        if not inside.size:
            continue
        rows, columns = np.nonzero(inside)
        painted = _texture(thing, rows, columns)
        painted[_rim(inside)[rows, columns]] *= _EDGE
        levels[rows_of, columns_of][inside] = painted
    levels += rng.uniform(-4, 4, levels.shape).astype(np.float32)
    return np.clip(levels, 0, 255).astype(np.uint8)


def _texture(
    thing: Thing, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float32]:
    """Return the color of each pixel, float32 ``[pixels, 3]``."""
    color = np.array(PALETTE[thing.color], np.float32)
    levels = np.repeat(color[None], len(rows), axis=0)
    step = max(2, min(thing.half_width, thing.half_height) // 2)
    if thing.material == "striped":
        marked = (rows // step) % 2 == 1
    elif thing.material == "checkered":
        marked = (rows // step + columns // step) % 2 == 1
    elif thing.material == "dotted":
        marked = ((rows % (2 * step) - step) ** 2 + (columns % (2 * step) - step) ** 2) < (
            step * 0.7
        ) ** 2
    else:
        marked = np.zeros(len(rows), np.bool_)
    levels[marked] = levels[marked] * _TEXTURE + 255 * (1 - _TEXTURE)
    return levels


def _rim(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels of a silhouette that touch its outside."""
    padded = np.pad(inside, 1)
    core = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return inside & ~core
