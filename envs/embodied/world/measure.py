"""Measures the boxes of objects and fixtures, and finds objects that intersect or float."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations

from .fixtures import SHELVES, SLOT_WIDTH
from .house import Fixture, FurnishedHouse
from .items import ITEMS, SIZES, ItemPart

_TOLERANCE = 1e-6


def half_extent(part: ItemPart) -> tuple[float, float, float]:
    """Return half the size of the box around a part, in centimeters."""
    if part.shape in ("box", "ellipsoid"):
        return part.size[0], part.size[1], part.size[2]
    radius = part.size[0]
    return radius, radius, part.size[1] if part.shape == "cylinder" else radius


@cache
def item_box(kind: str, scale: float) -> tuple[float, float, float, float, float]:
    """Return left, front, right, back and top of the box around an object, in meters.

    The origin is the center of its base, which its lowest part touches.
    """
    boxes = [(part.at, half_extent(part)) for part in ITEMS[kind].parts]
    factor = scale / 100
    return (
        min(at[0] - half[0] for at, half in boxes) * factor,
        min(at[1] - half[1] for at, half in boxes) * factor,
        max(at[0] + half[0] for at, half in boxes) * factor,
        max(at[1] + half[1] for at, half in boxes) * factor,
        max(at[2] + half[2] for at, half in boxes) * factor,
    )


def flaws(house: FurnishedHouse) -> list[str]:
    """Return a sentence for each object that intersects another, floats or is outside its room."""
    return [*_fixture_flaws(house), *_item_flaws(house)]


def _fixture_flaws(house: FurnishedHouse) -> Iterator[str]:
    standing = [each for each in house.fixtures.values() if not each.host]
    for each in standing:
        room = house.rooms[each.room]
        left, front, right, back = _footprint(each)
        inside = room.left <= left and right <= room.right
        if not inside or front < room.front or back > room.back:
            yield f"{each.name} is outside of its room"
    for one, other in combinations(standing, 2):
        if one.room == other.room and _overlap(_footprint(one), _footprint(other)):
            yield f"{one.name} intersects {other.name}"
    for door in house.doors:
        wide, deep = (0.5, 0.3) if door.along_x else (0.3, 0.5)
        box = (door.x - wide, door.y - deep, door.x + wide, door.y + deep)
        yield from (f"{each.name} blocks a door" for each in standing
                    if each.room in door.rooms and _overlap(box, _footprint(each)))  # fmt: skip


def _footprint(each: Fixture) -> tuple[float, float, float, float]:
    wide, deep = each.type.width / 2, each.type.depth / 2
    if abs(math.sin(each.yaw)) > 0.5:
        wide, deep = deep, wide
    return each.x - wide, each.y - deep, each.x + wide, each.y + deep


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    apart_x = one[2] <= other[0] + _TOLERANCE or other[2] <= one[0] + _TOLERANCE
    return not apart_x and one[3] > other[1] + _TOLERANCE and other[3] > one[1] + _TOLERANCE


def _item_flaws(house: FurnishedHouse) -> Iterator[str]:
    if len({*house.places.values()}) < len(house.places):
        yield "two objects are at one place"
    for name, (holder, slot) in house.places.items():
        item, fixture = house.items[name], house.fixtures[holder]
        left, front, right, back, _ = item_box(item.kind, SIZES[item.look.size])
        lowest = min(part.at[2] - half_extent(part)[2] for part in item.type.parts)
        if abs(lowest) > _TOLERANCE:
            yield f"{name} does not stand on its base"
        if max(-left, right) * 2 > SLOT_WIDTH - 0.02 + _TOLERANCE:
            yield f"{name} intersects its neighbor"
        x, y, up = fixture.slots[slot]
        shelves = SHELVES.get(fixture.kind, (fixture.type.height,))
        if up not in shelves:
            yield f"{name} floats"
        depth = fixture.type.depth / 2
        inward = (x - fixture.x) * -math.sin(fixture.yaw) + (y - fixture.y) * math.cos(fixture.yaw)
        if inward + front < -depth - _TOLERANCE or inward + back > depth + _TOLERANCE:
            yield f"{name} hangs over the edge of {holder}"
