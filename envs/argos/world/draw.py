"""Draws the pixels of a frame: things with their textures and shadows on a ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels

from .grounds import Ground
from .things import PALETTE, FrameSize, Thing, owners, silhouette

_EDGE = 0.6
_TEXTURE = 0.55


_SHADE = 0.72
"""Brightness of what lies in a shadow, relative to the light."""


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
