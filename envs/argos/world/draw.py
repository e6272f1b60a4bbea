"""Draws the pixels of a frame: a tinted background, and things with their textures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels

from .things import COLORS, FrameSize, Thing, owners, silhouette

TINTS: tuple[tuple[int, int, int], ...] = (
    (176, 160, 160),
    (160, 176, 160),
    (160, 160, 180),
    (178, 176, 152),
    (174, 158, 178),
    (154, 176, 178),
)
"""Tints of the background of a scene; the tint may be a shortcut to the answer."""

_EDGE = 0.6
_TEXTURE = 0.55


Slope = tuple[float, float]
"""Brightness gradients down and across, in levels from the center to an edge."""


def draw_slope(rng: np.random.Generator) -> Slope:
    """Return a random brightness gradient; the frames of a video share one."""
    down, across = rng.uniform(-18, 18, 2)
    return float(down), float(across)


def paint(
    things: tuple[Thing, ...],
    extent: FrameSize,
    tint: int,
    slope: Slope,
    rng: np.random.Generator,
) -> Pixels:
    """Return a frame, uint8 ``[height, width, 3]``.

    Args:
        things: The things from back to front.
        extent: Size of the frame.
        tint: An index of `TINTS`.
        slope: The brightness gradient.
        rng: Draws the noise.
    """
    levels = _ground(extent, tint, slope)
    shown = owners(things, extent)
    for number, thing in enumerate(things):
        if thing.shape == "region":
            mine = shown == number
            rows, columns = np.nonzero(mine)
            levels[mine] = _texture(thing, rows, columns)
            continue
        rows_of, columns_of, inside = silhouette(thing, extent)
        if not inside.size:
            continue
        rows, columns = np.nonzero(inside)
        painted = _texture(thing, rows, columns)
        painted[_rim(inside)[rows, columns]] *= _EDGE
        levels[rows_of, columns_of][inside] = painted
    levels += rng.uniform(-4, 4, levels.shape).astype(np.float32)
    return np.clip(levels, 0, 255).astype(np.uint8)


def _ground(extent: FrameSize, tint: int, slope: Slope) -> NDArray[np.float32]:
    down, across = np.mgrid[-1 : 1 : extent.height * 1j, -1 : 1 : extent.width * 1j]
    light = (slope[0] * down + slope[1] * across)[:, :, None]
    return np.asarray(light + np.array(TINTS[tint], np.float32), np.float32)


def _texture(
    thing: Thing, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float32]:
    """Return the color of each pixel, float32 ``[pixels, 3]``."""
    color = np.array(COLORS[thing.color], np.float32)
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
