"""Writes the bodies of fixtures and objects as MuJoCo XML. Lengths are in meters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..fixtures import FIXTURES, SHELVES
from ..house import Fixture, Item
from ..items import COLORS, SIZES, Part

Color = Sequence[float]

DARK, LIGHT = (0.10, 0.10, 0.11), (0.90, 0.90, 0.88)
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
_INK = {"white": "black", "yellow": "black", "pink": "black", "orange": "black"}


class Geom(NamedTuple):
    """Describes one primitive.

    Attributes:
        shape: The MuJoCo type.
        size: Half sizes, or radius and half height.
        at: The middle.
        color: RGB, 0 to 1.
        material: ``""``, ``"shiny"``, ``"glass"`` or ``"glow"``.
        state: The state in which it is shown: ``""`` for always.
        turn: Rotation around x, y and z in degrees.
    """

    shape: str
    size: Sequence[float]
    at: Sequence[float]
    color: Color
    material: str = ""
    state: str = ""
    turn: Sequence[float] = (0.0, 0.0, 0.0)

    def xml(self, name: str, group: int) -> str:
        """Return the XML element."""
        material = f' material="{self.material}"' if self.material else ""
        turn = f' euler="{_numbers(self.turn)}"' if any(self.turn) else ""
        alpha = 0.55 if self.material == "glass" else 1.0
        return (
            f'<geom name="{name}" type="{self.shape}" size="{_numbers(self.size)}" '
            f'pos="{_numbers(self.at)}" rgba="{_numbers((*self.color, alpha))}" '
            f'group="{group}"{material}{turn}/>'
        )


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.5g}" for value in values)


def box(
    low: Sequence[float], high: Sequence[float], color: Color, material: str = "", state: str = ""
) -> Geom:
    """Return a box from one corner to the opposite one."""
    half = [max((top - bottom) / 2, 1e-3) for bottom, top in zip(low, high, strict=True)]
    middle = [(bottom + top) / 2 for bottom, top in zip(low, high, strict=True)]
    return Geom("box", half, middle, color, material, state)


# ---------------------------------------------------------------------- objects


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
        yield from _slices(core, scale, look)
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


def _primitive(part: Part, scale: float, color: Color, material: str, state: str) -> Geom:
    return Geom(
        part.shape,
        [each * scale for each in part.size],
        [each * scale for each in part.at],
        color,
        material,
        state,
    )


def _height(part: Part) -> float:
    return part.size[-1] if part.shape != "sphere" else part.size[0]


def _pattern(core: Part, scale: float, item: Item, ink: Color) -> Iterator[Geom]:
    if item.look.pattern == "dotted":
        yield from _spots(core, scale, ink, "", 10, 0.2)
    elif item.look.pattern == "striped":
        yield from _stripes(core, scale, ink)


def _stripes(core: Part, scale: float, ink: Color) -> Iterator[Geom]:
    x, y, up = (each * scale for each in core.at)
    size = [each * scale for each in core.size]
    if core.shape == "box":
        wide, deep, high = size
        for place in (-0.6, 0.0, 0.6):
            yield Geom("box", (wide * 0.14, deep + 0.0015, high + 0.0015),
                       (x + wide * place, y, up), ink)  # fmt: skip
        return
    radius = size[0]
    half = size[1] if core.shape == "cylinder" else _height(core) * scale
    if core.shape == "cylinder" and half < 0.02:  # flat: bars across its top
        for place in (-0.5, 0.0, 0.5):
            length = radius * math.sqrt(1 - place**2)
            yield Geom("box", (radius * 0.12, length, half + 0.0015), (x + radius * place, y, up),
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
    core: Part, scale: float, color: Color, state: str, count: int, share: float
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
        if core.shape == "box" or high < 0.02:  # on the top and on the front
            column = ((place * 7) % count + 0.5) / count * 1.6 - 0.8
            at = (x + wide * column, y + deep * (0.5, -0.45, 0.0)[place % 3], up + high)
            if core.shape == "box" and place % 2 and high > 0.02:
                at = (x + wide * column, y - deep, up + high * level)
            yield Geom("sphere", (spot * 0.75,), at, color, "", state)
            continue
        at = (x + wide * around * math.cos(angle), y + deep * around * math.sin(angle),
              up + high * level)  # fmt: skip
        yield Geom("sphere", (spot,), at, color, "", state)


def _slices(core: Part, scale: float, color: Color) -> Iterator[Geom]:
    """Yield four slices that stand apart, pale inside."""
    size = [each * scale for each in core.size]
    high = size[-1] if core.shape != "sphere" else size[0]
    deep = size[1] if core.shape in ("box", "ellipsoid") else size[0]
    pale = tuple(0.55 * each + 0.45 for each in color)
    for place in range(4):
        right = (place - 1.5) * 0.05
        yield Geom("ellipsoid", (0.012, deep, high), (right, 0, high), color, "", "sliced")
        yield Geom("ellipsoid", (0.014, deep * 0.85, high * 0.85), (right + 0.003, 0, high), pale,
                   "", "sliced")  # fmt: skip


# ---------------------------------------------------------------------- fixtures


def fixture_geoms(fixture: Fixture) -> Iterator[Geom]:
    """Yield the primitives of a fixture, without its door or drawer."""
    spec = FIXTURES[fixture.kind]
    if fixture.kind in _OWN:
        yield from _OWN[fixture.kind](fixture)
    elif spec.opening == "door":
        yield from _case(fixture)
    elif spec.opening == "drawer":
        wide, deep, high = spec.width / 2, spec.depth / 2, spec.height
        yield box((-wide, -deep + 0.03, 0), (wide, deep, 0.28), spec.color)
        yield box((-wide, -deep, high - 0.02), (wide, deep, high), _shade(spec.color, 0.8))
        yield box((-wide, deep - 0.02, 0), (wide, deep, high), spec.color)
        for side in (-1, 1):
            yield box((side * wide - 0.02, -deep, 0), (side * wide + 0.02, deep, high), spec.color)
    else:
        yield from _table(fixture)


def door_geoms(fixture: Fixture) -> list[Geom]:
    """Return the primitives of a door or drawer, from its hinge or the middle of the body."""
    spec = FIXTURES[fixture.kind]
    wide, deep, high = spec.width / 2, spec.depth / 2, spec.height
    low = 0.92 if fixture.kind == "Microwave" else 0.04
    metal = (0.25, 0.25, 0.27)
    if spec.opening == "drawer":
        low, front = 0.3, -deep - 0.02
        color = _shade(spec.color, 1.12)
        return [
            box((-wide, front, low), (wide, front + 0.02, high - 0.005), color),
            box((-0.1, front - 0.03, high - 0.14), (0.1, front, high - 0.11), metal),
            box((-wide + 0.03, front, low), (wide - 0.03, deep - 0.05, low + 0.015), color),
        ]
    # The hinge is at the left front edge; the door goes to the right.
    color = _shade(spec.color, 1.12)
    geoms = [
        box((0, -0.02, low), (spec.width, 0.01, high - 0.01), color),
        box((spec.width - 0.08, -0.05, (low + high) / 2 - 0.12),
            (spec.width - 0.05, -0.02, (low + high) / 2 + 0.12), metal),
    ]  # fmt: skip
    if fixture.kind == "Microwave":
        geoms.append(box((0.08, -0.024, low + 0.07), (spec.width - 0.14, -0.02, high - 0.07), DARK))
        geoms.append(
            box((0.1, -0.028, low + 0.09), (spec.width - 0.16, -0.024, high - 0.09),
                (1.0, 0.8, 0.2), "glow", "on")
        )  # fmt: skip
    return geoms


def _shade(color: Color, factor: float) -> Color:
    return tuple(min(1.0, each * factor) for each in color)


def _table(fixture: Fixture) -> Iterator[Geom]:
    """Yield a surface on legs, or on a body for counters and cupboards."""
    spec = FIXTURES[fixture.kind]
    wide, deep, high = spec.width / 2, spec.depth / 2, spec.height
    if fixture.kind in ("DiningTable", "SideTable", "CoffeeTable", "Desk", "Cart", "Ottoman"):
        yield box((-wide, -deep, high - 0.05), (wide, deep, high), spec.color)
        for right in (-1, 1):
            for back in (-1, 1):
                x, y = right * (wide - 0.05), back * (deep - 0.05)
                yield box((x - 0.03, y - 0.03, 0), (x + 0.03, y + 0.03, high - 0.05),
                          _shade(spec.color, 0.8))  # fmt: skip
        return
    yield box((-wide, -deep + 0.02, 0), (wide, deep, high - 0.04), _shade(spec.color, 0.75))
    yield box((-wide, -deep, high - 0.04), (wide, deep, high), spec.color)
    if fixture.kind in ("Sofa", "ArmChair", "Bed"):
        yield box((-wide, deep - 0.12, high), (wide, deep, high + 0.4), _shade(spec.color, 0.85))
    if fixture.kind == "Bed":
        yield box((-wide, -deep, high), (-wide + 0.04, deep, high + 0.25), (0.4, 0.3, 0.2))
    if fixture.kind == "TVStand":
        yield box((-0.5, deep - 0.06, high + 0.3), (0.5, deep - 0.02, high + 0.85), DARK)
    if fixture.kind == "Shelf":
        for level in (0.3, 0.6):
            yield box((-wide, -deep - 0.005, level), (wide, -deep + 0.02, level + 0.03), DARK)
    if fixture.kind == "Toilet":
        yield box((-wide, deep - 0.15, high), (wide, deep, high + 0.25), spec.color)
    if fixture.kind == "Dresser":
        for level in (0.25, 0.5, 0.75):
            yield box((-wide + 0.05, -deep + 0.005, level - 0.01),
                      (wide - 0.05, -deep + 0.02, level), LIGHT)  # fmt: skip


def _case(fixture: Fixture) -> Iterator[Geom]:
    """Yield a box that is open to the front, with a floor at each shelf."""
    spec = FIXTURES[fixture.kind]
    wide, deep, high = spec.width / 2, spec.depth / 2, spec.height
    low = 0.9 if fixture.kind == "Microwave" else 0.0
    inner = _shade(spec.color, 0.9 if fixture.kind != "Microwave" else 1.8)
    if low:
        yield box((-wide, -deep, 0), (wide, deep, low), (0.55, 0.42, 0.3))
    yield box((-wide, deep - 0.02, low), (wide, deep, high), inner)
    for side in (-1, 1):
        yield box((side * wide - 0.015, -deep, low), (side * wide + 0.015, deep, high), spec.color)
    yield box((-wide, -deep, high - 0.02), (wide, deep, high), spec.color)
    for shelf in SHELVES[fixture.kind]:
        yield box((-wide, -deep, shelf - 0.02), (wide, deep, shelf), inner)


def _basin(fixture: Fixture) -> Iterator[Geom]:
    """Yield a body with a basin."""
    spec = FIXTURES[fixture.kind]
    wide, deep, high = spec.width / 2, spec.depth / 2, spec.height
    floor = SHELVES[fixture.kind][0]
    yield box((-wide, -deep, 0), (wide, deep, floor), _shade(spec.color, 0.85))
    edge = 0.04
    yield box((-wide, -deep, floor), (wide, -deep + edge, high), spec.color)
    yield box((-wide, deep - edge, floor), (wide, deep, high), spec.color)
    for side in (-1, 1):
        yield box((min(side * wide, side * (wide - edge)), -deep, floor),
                  (max(side * wide, side * (wide - edge)), deep, high), spec.color)  # fmt: skip


def _faucet(fixture: Fixture) -> Iterator[Geom]:
    high = FIXTURES["Sink"].height
    steel = FIXTURES[fixture.kind].color
    yield box((-0.02, -0.02, high - 0.1), (0.02, 0.02, high + 0.28), steel, "shiny")
    yield box((-0.02, -0.26, high + 0.24), (0.02, 0.02, high + 0.28), steel, "shiny")
    yield Geom("cylinder", (0.022, 0.16), (0, -0.25, high + 0.08), (0.3, 0.6, 1.0), "glow", "on")


def _stove(fixture: Fixture) -> Iterator[Geom]:
    yield from _table(fixture)
    spec = FIXTURES[fixture.kind]
    for right in (-0.12, 0.12):
        at = (right, -0.08, spec.height + 0.001)
        yield Geom("cylinder", (0.11, 0.002), at, (0.12, 0.12, 0.12))
        yield Geom("cylinder", (0.112, 0.004), at, (1.0, 0.2, 0.05), "glow", "on")
    yield box((-0.05, -spec.depth / 2 - 0.01, 0.78), (0.05, -spec.depth / 2 + 0.02, 0.84),
              (1.0, 0.2, 0.05), "glow", "on")  # fmt: skip


def _coffee_machine(fixture: Fixture) -> Iterator[Geom]:
    yield from _table(fixture)
    deep, high = FIXTURES[fixture.kind].depth / 2, FIXTURES[fixture.kind].height
    yield box((-0.15, deep - 0.2, high), (0.15, deep - 0.02, high + 0.42), (0.35, 0.1, 0.1))
    yield box((-0.15, deep - 0.34, high + 0.3), (0.15, deep - 0.2, high + 0.42), (0.35, 0.1, 0.1))
    yield box((-0.06, deep - 0.35, high + 0.33), (0.06, deep - 0.34, high + 0.39),
              (0.2, 1.0, 0.3), "glow", "on")  # fmt: skip


def _lamp(fixture: Fixture) -> Iterator[Geom]:
    spec = FIXTURES[fixture.kind]
    high = spec.height
    stand = 0.7 if fixture.kind == "DeskLamp" else 0.04
    yield box((-0.2, -0.2, 0), (0.2, 0.2, stand), (0.5, 0.38, 0.26))
    yield Geom("cylinder", (0.02, (high - stand) / 2), (0, 0, (high + stand) / 2), DARK)
    yield Geom("cylinder", (0.16, 0.12), (0, 0, high), _shade(spec.color, 0.55), "", "off")
    yield Geom("cylinder", (0.16, 0.12), (0, 0, high), (1.0, 0.95, 0.6), "glow", "on")


_OWN = {
    "GarbageCan": _basin,
    "Bathtub": _basin,
    "Sink": _basin,
    "Faucet": _faucet,
    "StoveBurner": _stove,
    "CoffeeMachine": _coffee_machine,
    "FloorLamp": _lamp,
    "DeskLamp": _lamp,
}
