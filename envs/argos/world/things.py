"""Defines the things of a scene, and computes exact masks from their geometry."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT

COLORS: dict[str, tuple[int, int, int]] = {
    "red": (208, 40, 40),
    "green": (40, 160, 60),
    "blue": (48, 80, 215),
    "yellow": (235, 205, 40),
    "purple": (150, 60, 180),
    "orange": (240, 130, 30),
}
MATERIALS = ("plain", "striped", "dotted", "checkered")
SHAPES = ("ball", "cube", "cone", "diamond")
SIZES = ("small", "large")


@dataclass(frozen=True, slots=True, config=STRICT)
class Thing:
    """Describes a thing with a position and a look. Later things of a frame are in front.

    Attributes:
        color: A key of `COLORS`.
        material: One of `MATERIALS`.
        shape: One of `SHAPES`, ``"bar"`` (of a chart) or ``"region"`` (of a map).
        size: One of `SIZES`.
        x: The center, native pixels. The pixels of a region are those closest to its center.
        y: The center, native pixels.
        half_width: Half of the width, native pixels.
        half_height: Half of the height, native pixels.
    """

    color: str
    material: str
    shape: str
    size: str
    x: int
    y: int
    half_width: int
    half_height: int

    @property
    def name(self) -> str:
        """Return the color and the shape."""
        return f"{self.color} {self.shape}"


Things = Annotated[tuple[Thing, ...], Strict(False)]


class FrameSize(NamedTuple):
    """Holds the width and the height of a frame, native pixels."""

    width: int
    height: int


@lru_cache(maxsize=512)
def owners(things: tuple[Thing, ...], extent: FrameSize) -> NDArray[np.int8]:
    """Return the index of the thing that each pixel shows, -1 for none, ``[height, width]``."""
    shown = np.full((extent.height, extent.width), -1, np.int8)
    regions = [number for number, thing in enumerate(things) if thing.shape == "region"]
    if regions:
        rows, columns = np.mgrid[0 : extent.height, 0 : extent.width]
        distances = np.stack(
            [(columns - things[each].x) ** 2 + (rows - things[each].y) ** 2 for each in regions]
        )
        shown[:] = np.array(regions, np.int8)[distances.argmin(axis=0)]
    for number, thing in enumerate(things):
        if thing.shape != "region":
            rows_of, columns_of, inside = silhouette(thing, extent)
            shown[rows_of, columns_of][inside] = number
    shown.flags.writeable = False
    return shown


@lru_cache(maxsize=512)
def boxes(things: tuple[Thing, ...], extent: FrameSize) -> dict[int, tuple[int, int, int, int]]:
    """Return the box around the visible pixels of each visible thing, by its index."""
    shown = owners(things, extent)
    found: dict[int, tuple[int, int, int, int]] = {}
    for number in range(len(things)):
        rows = np.flatnonzero((shown == number).any(axis=1))
        if rows.size:
            columns = np.flatnonzero((shown == number).any(axis=0))
            found[number] = (
                int(columns[0]),
                int(rows[0]),
                int(columns[-1]) + 1,
                int(rows[-1]) + 1,
            )
    return found


def silhouette(thing: Thing, extent: FrameSize) -> tuple[slice, slice, NDArray[np.bool_]]:
    """Return the rows and columns that a thing spans within the frame, and its mask in them."""
    top, bottom = (
        max(thing.y - thing.half_height, 0),
        min(thing.y + thing.half_height + 1, extent.height),
    )
    left, right = (
        max(thing.x - thing.half_width, 0),
        min(thing.x + thing.half_width + 1, extent.width),
    )
    if top >= bottom or left >= right:
        return slice(0, 0), slice(0, 0), np.zeros((0, 0), np.bool_)
    rows, columns = np.mgrid[top:bottom, left:right]
    across = np.abs(columns - thing.x) / max(thing.half_width, 1)
    down = (rows - thing.y) / max(thing.half_height, 1)
    if thing.shape == "ball":
        inside = across**2 + down**2 <= 1
    elif thing.shape == "diamond":
        inside = across + np.abs(down) <= 1
    elif thing.shape == "cone":
        inside = across <= (down + 1) / 2
    else:
        inside = np.ones(rows.shape, np.bool_)
    return slice(top, bottom), slice(left, right), inside
