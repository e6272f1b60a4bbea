"""Defines the parts of a house that no action changes, and measures boxes for faulty places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

from .fixtures import DRAWER_TRAVEL, FIXTURES, SHELVES, SLOT_WIDTH, FixtureType, slots_of
from .items import ITEMS, SIZES, ItemLook, ItemPart, ItemType

Point = tuple[float, float, float]
"""x, y and z in meters; z points up."""

STANDING = 0.5
"""Distance in meters between an agent and a fixture; 0.9 in front of one that opens."""

FLOOR_SLOTS = 3
"""Number of objects that can be dropped in front of one fixture."""

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Room:
    """Describes a room by the coordinates of its walls, in meters."""

    kind: str
    left: float
    front: float
    right: float
    back: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Describes a doorway or window by its center, and whether the wall runs along x."""

    x: float
    y: float
    along_x: bool
    rooms: tuple[int, ...]


@dataclass(frozen=True)
class Fixture:
    """Describes a receptacle or an appliance with its position.

    Attributes:
        name: The name in the dialect of ALFRED, for example ``"SideTable_2"``.
        kind: The type of the fixture, a key of `FIXTURES`.
        room: The index of its room.
        x: Center of the body, meters.
        y: Center of the body, meters.
        yaw: Rotation about the vertical axis, radians; 0 if an agent that faces it looks along +y.
        host: The fixture that it is a part of (a faucet's sink), or ``""``.
    """

    name: str
    kind: str
    room: int
    x: float
    y: float
    yaw: float
    host: str = ""

    @property
    def type(self) -> FixtureType:
        """Return the type of the fixture."""
        return FIXTURES[self.kind]

    def place(self, local: Point) -> Point:
        """Return the world position of a local one (right, back, up)."""
        right, back, up = local
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return self.x + right * cos - back * sin, self.y + right * sin + back * cos, up

    @cached_property
    def slots(self) -> tuple[Point, ...]:
        """Return the world positions of the slots of the fixture while it is closed."""
        return tuple(self.place(slot) for slot in slots_of(self.kind))

    def slot(self, index: int, is_open: bool) -> Point:
        """Return the world position of a slot."""
        if not (is_open and self.type.opening == "drawer"):
            return self.slots[index]
        right, back, up = slots_of(self.kind)[index]
        return self.place((right, back - DRAWER_TRAVEL, up))

    def floor_slot(self, index: int) -> Point:
        """Return the world position of an object that was dropped in front of it."""
        return self.place(((index - 1) * 0.26, -self.type.depth / 2 - 0.15, 0.0))

    @property
    def standpoint(self) -> tuple[float, float]:
        """Return the position of an agent that uses the fixture, in meters."""
        away = 0.9 if self.type.opening else STANDING
        x, y, _ = self.place((0.0, -self.type.depth / 2 - away, 0.0))
        return x, y


@dataclass(frozen=True, slots=True)
class Item:
    """Describes an object that can be moved.

    Attributes:
        name: The name in the dialect of ALFRED, for example ``"Mug_2"``.
        kind: The type of the object, a key of `ITEMS`.
        look: The look that distinguishes it from others of its type.
        yaw: The rotation of the object about the vertical axis, radians.
    """

    name: str
    kind: str
    look: ItemLook
    yaw: float = 0.0

    @property
    def type(self) -> ItemType:
        """Return the type of the item."""
        return ITEMS[self.kind]


@dataclass(frozen=True)
class FurnishedHouse:
    """Holds rooms, fixtures and objects, and the first places of the objects.

    Attributes:
        doors: Doorways between rooms.
        windows: Windows in outer walls.
        fixtures: Receptacles and appliances by name.
        items: Objects by name.
        places: The first fixture and slot of each object.
        dirty: Objects that are dirty at the beginning.
        open: Fixtures that are open at the beginning.
        palette: A number that chooses the colors of walls and floors.
    """

    rooms: tuple[Room, ...]
    doors: tuple[Gap, ...]
    windows: tuple[Gap, ...]
    fixtures: Mapping[str, Fixture]
    items: Mapping[str, Item]
    places: Mapping[str, tuple[str, int]]
    dirty: frozenset[str] = frozenset()
    palette: int = 0
    open: frozenset[str] = frozenset()

    def of_kind(self, kind: str) -> list[str]:
        """Return the names of all fixtures or objects of a type."""
        pool: Mapping[str, Fixture | Item] = self.fixtures if kind in FIXTURES else self.items
        return [name for name, each in pool.items() if each.kind == kind]

    def fixtures_with(self, role: str) -> list[str]:
        """Return the names of the fixtures with this role."""
        return [name for name, each in self.fixtures.items() if each.type.role == role]

    def tap_of(self, sink: str) -> str:
        """Return the faucet of a sink, ``""`` if it has none."""
        return next((name for name, each in self.fixtures.items() if each.host == sink), "")


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
