"""Writes the bodies of objects, with their looks and states. Lengths are in meters."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..house import Item
from ..items import COLORS, SIZES, ItemPart
from .geoms import DARK, LIGHT, Color, Geom, box

_FIXED = {
    "dark": DARK,
    "light": LIGHT,
    "metal": (0.72, 0.72, 0.75),
    "wood": (0.45, 0.30, 0.18),
    "leaf": (0.20, 0.55, 0.18),
    "flame": (1.0, 0.70, 0.10),
}
_DIRT = (0.30, 0.18, 0.06)
_HOT = (1.0, 0.25, 0.05)
_COLD = (0.55, 0.85, 1.0)
_FLAT = 0.02
"""Half the height below which only the top of a part is patterned, in meters."""

_RELIEF = 0.0045
"""Height of dots and stripes above the surface in meters, more than that of flat parts."""

_INK = {"white": "black", "yellow": "black", "pink": "black", "orange": "black"}


def item_geoms(item: Item) -> Iterator[Geom]:
    """Yield the primitives of an object, with those that show its states."""
    scale = SIZES[item.look.size] / 100
    look = COLORS[item.look.color]
    material = {"matte": "", "shiny": "shiny", "glass": "glass"}[item.look.material]
    ability = "whole" if item.type.sliced else ""
    for part in item.type.parts:
        color = look if part.color == "look" else _FIXED[part.color]
        yield _primitive(part, scale, color, material if part.color == "look" else "", ability)
    core = item.type.parts[0]
    ink = COLORS[_INK.get(item.look.color, "white")]
    yield from (each._replace(state=ability) for each in _pattern(core, scale, item, ink))
    if item.type.sliced:
        yield from _slices(core, scale, item, ink)
    if item.type.washed:
        yield from _spots(core, scale, _DIRT, "dirty", 5, 0.34)
    top = (core.at[2] + _height(core)) * scale
    for place in range(3):
        right, up = (place - 1) * 0.028, top + 0.035 + 0.03 * (place % 2)
        yield Geom("ellipsoid", (0.009, 0.009, 0.026), (right, 0, up), _HOT, "glow", "hot")
        side = (place - 1) * 0.045
        yield Geom("box", (0.014,) * 3, (side, -0.065, 0.014), _COLD, "glow", "cold",
                   (0, 0, 30.0 * place))  # fmt: skip
        yield Geom("box", (0.012,) * 3, (side * 0.5, 0, top + 0.012), _COLD, "glow", "cold")


def _primitive(part: ItemPart, scale: float, color: Color, material: str, state: str) -> Geom:
    return Geom(
        part.shape,
        [each * scale for each in part.size],
        [each * scale for each in part.at],
        color,
        material,
        state,
    )


def _height(part: ItemPart) -> float:
    return part.size[-1] if part.shape != "sphere" else part.size[0]


def _pattern(core: ItemPart, scale: float, item: Item, ink: Color) -> Iterator[Geom]:
    if item.look.pattern == "dotted":
        flat = core.shape == "box" or (core.shape == "cylinder" and core.size[1] * scale < _FLAT)
        yield from _dots(core, scale, ink) if flat else _spots(core, scale, ink, "", 10, 0.26)
    elif item.look.pattern == "striped":
        yield from _stripes(core, scale, ink)


def _stripes(core: ItemPart, scale: float, ink: Color) -> Iterator[Geom]:
    x, y, up = (each * scale for each in core.at)
    size = [each * scale for each in core.size]
    if core.shape == "box":
        wide, deep, high = size
        for place in (-0.6, 0.0, 0.6):
            yield Geom("box", (wide * 0.14, deep + _RELIEF / 2, high + _RELIEF),
                       (x + wide * place, y, up), ink)  # fmt: skip
        return
    radius = size[0]
    half = size[1] if core.shape == "cylinder" else _height(core) * scale
    if core.shape == "cylinder" and half < _FLAT:  # bars across its top
        for place in (-0.5, 0.0, 0.5):
            length = radius * math.sqrt(1 - place**2)
            yield Geom("box", (radius * 0.12, length, half + _RELIEF), (x + radius * place, y, up),
                       ink)  # fmt: skip
        return
    for place in (-0.55, 0.0, 0.55):
        around = 1.0 if core.shape == "cylinder" else math.sqrt(1 - place**2)
        deep = size[1] if core.shape == "ellipsoid" else radius
        yield Geom("ellipsoid" if core.shape != "cylinder" else "cylinder",
                   (radius * around * 1.03, half * 0.13) if core.shape == "cylinder" else
                   (radius * around * 1.04, deep * around * 1.04, half * 0.13),
                   (x, y, up + half * place), ink)  # fmt: skip


def _spots(
    core: ItemPart, scale: float, color: Color, state: str, count: int, share: float
) -> Iterator[Geom]:
    """Yield flat spots over the front and the top of a part."""
    x, y, up = (each * scale for each in core.at)
    size = [each * scale for each in core.size]
    wide = size[0]
    deep = size[1] if core.shape in ("box", "ellipsoid") else wide
    high = size[-1] if core.shape != "sphere" else wide
    shift = 0.4 if state else 0.0
    for place in range(count):
        angle = -math.pi / 2 + (place / count - 0.45 + shift / count) * 2.6
        level = (-0.5, 0.15, 0.75)[place % 3]
        around = math.sqrt(max(0.0, 1 - level**2)) if core.shape in ("sphere", "ellipsoid") else 1.0
        spot = max(min(wide, 0.06) * share, 0.015 if state else 0.0)
        if core.shape == "box" or high < _FLAT:  # on the top and on the front
            column = ((place * 7) % count + 0.5) / count * 1.6 - 0.8
            at = (x + wide * column, y + deep * (0.5, -0.45, 0.0)[place % 3], up + high)
            if core.shape == "box" and place % 2 and high > _FLAT:
                at = (x + wide * column, y - deep, up + high * level)
            yield Geom("sphere", (spot * 0.75,), at, color, "", state)
            continue
        at = (x + wide * around * math.cos(angle), y + deep * around * math.sin(angle),
              up + high * level)  # fmt: skip
        yield Geom("sphere", (spot,), at, color, "", state)


def _dots(core: ItemPart, scale: float, ink: Color) -> Iterator[Geom]:
    """Yield a grid of dots on the top of a flat part or a box, and on the front of a high box."""
    x, y, up = (each * scale for each in core.at)
    wide, *_, high = (each * scale for each in core.size)
    deep = core.size[1] * scale if core.shape == "box" else wide
    reach = 0.62 if core.shape == "box" else 0.5  # a disc has no corners
    along: tuple[float, ...] = (-1.0, 0.0, 1.0)
    across: tuple[float, ...] = (-1.0, 1.0)
    dot = min(reach * max(wide, deep) / 3, reach * min(wide, deep) / 2)
    if max(wide, deep) > 2.5 * min(wide, deep):  # a row along a handle
        along, across, dot = (-1.0, -0.5, 0.0, 0.5, 1.0), (0.0,), 0.7 * min(wide, deep)
    columns, rows = (along, across) if wide >= deep else (across, along)
    grid = [(wide * reach * right, deep * reach * back) for right in columns for back in rows]
    for right, back in grid:
        yield Geom("cylinder", (dot, _RELIEF), (x + right, y + back, up + high), ink)
    if core.shape != "box" or high < _FLAT:
        return
    dot = reach * min(wide / 3, high / 2)
    for right in (-reach, 0.0, reach):
        for level in (-0.5, 0.5):
            at = (x + wide * right, y - deep, up + high * level)
            yield Geom("cylinder", (dot, _RELIEF), at, ink, "", "", (90.0, 0.0, 0.0))


def _slices(core: ItemPart, scale: float, item: Item, ink: Color) -> Iterator[Geom]:
    """Yield four separate slices, pale inside; the pattern continues on their rims."""
    size = [each * scale for each in core.size]
    high = size[-1] if core.shape != "sphere" else size[0]
    deep = size[1] if core.shape in ("box", "ellipsoid") else size[0]
    color = COLORS[item.look.color]
    pale = tuple(0.55 * each + 0.45 for each in color)
    shape = "box" if core.shape == "box" else "ellipsoid"
    for place in range(4):
        right = (place - 1.5) * 0.05
        skin = ink if item.look.pattern == "striped" and place % 2 else color
        yield Geom(shape, (0.013, deep, high), (right, 0, high), skin, "", "sliced")
        yield Geom(shape, (0.015, deep * 0.8, high * 0.8), (right + 0.003, 0, high), pale,
                   "", "sliced")  # fmt: skip
        if item.look.pattern == "dotted":
            for back, up in ((-0.98, 1.0), (-0.7, 1.7), (-0.7, 0.35)):
                yield Geom("sphere", (0.009,), (right, deep * back, high * up), ink, "", "sliced")


def hand_geoms() -> list[Geom]:
    """Return the palm and the arm of the agent, below the object in its hand."""
    teal = (0.15, 0.62, 0.60)
    return [
        box((-0.09, -0.09, -0.03), (0.09, 0.06, -0.004), teal),
        box((-0.035, -0.45, -0.06), (0.035, -0.05, -0.03), (0.13, 0.45, 0.45)),
    ]
