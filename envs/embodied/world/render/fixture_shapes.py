"""Writes the bodies of fixtures and of their doors and drawers. Lengths are in meters."""

from __future__ import annotations

from collections.abc import Iterator

from ..fixtures import FIXTURES, SHELVES
from ..house import Fixture
from .geoms import DARK, LIGHT, Color, Geom, box


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
    """Return the primitives of a door or drawer, relative to its hinge or the body's center."""
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
    # The hinge is at the left front edge; the door extends to the right.
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
