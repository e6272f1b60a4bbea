"""Defines the things of a scene with exact masks, and resolves the labels that name them."""

from __future__ import annotations

import re
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

PALETTE = COLORS | {"gray": (112, 112, 118)}
"""The colors of things, and of the wall."""

MATERIALS = ("plain", "striped", "dotted", "checkered")

SHAPES = ("ball", "cube", "cone", "diamond", "star", "cross", "ring", "heart")

SIZES = ("small", "large")

SYNONYMS = {
    "sphere": "ball",
    "circle": "ball",
    "box": "cube",
    "square": "cube",
    "block": "cube",
    "triangle": "cone",
    "pyramid": "cone",
    "rhombus": "diamond",
    "column": "bar",
    "area": "region",
    "country": "region",
    "violet": "purple",
    "big": "large",
    "little": "small",
    "tiny": "small",
    "stripy": "striped",
    "spotted": "dotted",
    "checked": "checkered",
    "solid": "plain",
    "screen": "wall",
    "grey": "gray",
    "matte": "plain",
}

_PARTS = frozenset(("bar", "region"))

_NOUNS = frozenset(SHAPES) | _PARTS | {"wall"}

_KNOWN = frozenset((*PALETTE, *MATERIALS, *SIZES, *_NOUNS))

_SKIPPED = frozenset(("a", "an", "the", "one", "of", "that"))

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, config=STRICT)
class Thing:
    """Describes a thing with a position and a look. Later things of a frame are in front.

    Attributes:
        color: A key of `PALETTE`.
        material: One of `MATERIALS`.
        shape: One of `SHAPES`, ``"bar"`` (of a chart), ``"region"`` (of a map) or ``"wall"``.
        size: One of `SIZES`.
        x: The center, native pixels. The pixels of a region are those within
            its width and height that are closer to its center than to those of other regions.
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


def plural(shape: str) -> str:
    """Return the plural of a shape."""
    return f"{shape}es" if shape.endswith("s") else f"{shape}s"


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
        distances = np.stack([_distances(things[each], rows, columns) for each in regions])
        closest = np.array(regions, np.int8)[distances.argmin(axis=0)]
        shown[:] = np.where(np.isfinite(distances.min(axis=0)), closest, -1)
    for number, thing in enumerate(things):
        if thing.shape != "region":
            rows_of, columns_of, inside = silhouette(thing, extent)
            shown[rows_of, columns_of][inside] = number
    shown.flags.writeable = False
    return shown


def _distances(
    region: Thing, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the squared distances of pixels to the center of a region, infinite outside it."""
    across, down = np.abs(columns - region.x), np.abs(rows - region.y)
    inside = (across <= region.half_width) & (down <= region.half_height)
    return np.where(inside, across**2 + down**2, np.inf)


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
    elif thing.shape == "star":
        angle = np.arctan2(columns - thing.x, thing.y - rows)
        inside = np.hypot(across, down) <= 0.68 + 0.32 * np.cos(5 * angle)
    elif thing.shape == "cross":
        inside = (across <= 0.36) | (np.abs(down) <= 0.36)
    elif thing.shape == "ring":
        inside = (across**2 + down**2 <= 1) & (across**2 + down**2 >= 0.2)
    elif thing.shape == "heart":
        lobes = (down < -0.1) & ((across - 0.5) ** 2 + (down + 0.5) ** 2 * 1 <= 0.25)
        inside = lobes | ((down >= -0.45) & (across <= (1 - down) / 1.45))
    else:
        inside = np.ones(rows.shape, np.bool_)
    return slice(top, bottom), slice(left, right), inside


@lru_cache(maxsize=4096)
def words_of(label: str) -> frozenset[str] | None:
    """Return the attributes that a label names, or None if it names no thing of this world.

    A label must contain a word for a shape: "red" or "thing" alone names nothing. A bar or a
    region also needs a color, because "bar" would match any position in a chart, and "region" any
    position on a map. Plurals are read as singulars.
    """
    words = {_singular(word) for word in _WORD.findall(label.casefold())} - _SKIPPED
    if not words <= _KNOWN or not words & _NOUNS:
        return None
    if words & _PARTS and not words & set(COLORS):
        return None
    return frozenset(words)


def names(label: str, thing: Thing) -> bool:
    """Return whether a label matches a thing: every word of the label applies to the thing."""
    words = words_of(label)
    return words is not None and words <= attributes(thing)


def attributes(thing: Thing) -> frozenset[str]:
    """Return the words that apply to a thing."""
    return frozenset((thing.color, thing.material, thing.shape, thing.size))


def normal_words(text: str) -> list[str]:
    """Return the words of a text in order, synonyms and plurals replaced."""
    return [_singular(word) for word in _WORD.findall(text.casefold())]


def _singular(word: str) -> str:
    if word in SYNONYMS:
        return SYNONYMS[word]
    if word in _KNOWN:
        return word
    for ending, instead in (("ies", "y"), ("xes", "x"), ("sses", "ss"), ("s", "")):
        if word.endswith(ending):
            single = word.removesuffix(ending) + instead
            single = SYNONYMS.get(single, single)
            if single in _KNOWN:
                return single
    return word
