"""Places the rooms, doors, windows and fixtures of a house."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import shuffled

from .fixtures import FIXTURES, ROOMS
from .house import Fixture, Gap, Room

MARGIN = 0.1
"""Distance in meters between two fixtures, and between a fixture and a wall beside it."""

CORNER = 1.85
"""Length in meters that stays free at both ends of the side walls, for the fixtures of the other
two walls and for agents in front of them."""

DOOR_CLEARANCE = 0.75
"""Length in meters on both sides of the center of a doorway that stays free."""

_FAUCET = "Faucet"


class Layout(NamedTuple):
    """Holds rooms, doorways, windows and fixtures."""

    rooms: tuple[Room, ...]
    doors: tuple[Gap, ...]
    windows: tuple[Gap, ...]
    fixtures: tuple[Fixture, ...]


@dataclass(slots=True)
class _Wall:
    """Describes a wall of a room from inside: its start, its direction, and its free segments."""

    room: int
    x: float
    y: float
    yaw: float
    free: list[tuple[float, float]] = field(default_factory=list)

    def point(self, along: float, away: float) -> tuple[float, float]:
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return self.x + along * cos + away * sin, self.y + along * sin - away * cos

    def cut(self, middle: float, clearance: float) -> None:
        pieces = []
        for start, end in self.free:
            pieces += [(start, min(end, middle - clearance)), (max(start, middle + clearance), end)]
        self.free = [(start, end) for start, end in pieces if end > start]


def lay_out(rng: np.random.Generator, rooms: int, only: Sequence[str] = ()) -> Layout:
    """Return a layout.

    Args:
        rng: The source of randomness.
        rooms: The number of rooms, 1 to 6.
        only: The fixtures of a house of one room, by default those of `ROOMS`; in a house of
            several rooms, the types that each room may contain.
    """
    made = _rooms(rng, rooms)
    doors = _doors(rng, made)
    walls = [_walls(index, room) for index, room in enumerate(made)]
    for door in doors:
        for index in door.rooms:
            _keep_free(walls[index], door)
    placed: list[tuple[str, int, float, float, float]] = []
    for index, room in enumerate(made):
        kinds = only or ROOMS[room.kind]
        if only and rooms > 1:
            kinds = [kind for kind in ROOMS[room.kind] if kind in only]
        placed += _furnish(rng, walls[index], kinds)
    return Layout(made, doors, _windows(made, doors), _named(rng, placed))


def _rooms(rng: np.random.Generator, count: int) -> tuple[Room, ...]:
    """Return rooms in two rows that share their walls."""
    columns = math.ceil(count / 2)
    across = np.cumsum([0.0, *rng.uniform(5.2, 6.0, columns)]).round(2).tolist()
    along = np.cumsum([0.0, *rng.uniform(5.0, 5.6, 2)]).round(2).tolist()
    kinds = list(ROOMS)
    first = shuffled(rng, kinds[: min(count, 3)]) + shuffled(rng, kinds[3:])[: max(0, count - 3)]
    return tuple(
        Room(
            kind,
            across[place // 2],
            along[place % 2],
            across[place // 2 + 1],
            along[place % 2 + 1],
        )
        for place, kind in enumerate(first)
    )


def _doors(rng: np.random.Generator, rooms: Sequence[Room]) -> tuple[Gap, ...]:
    """Return a doorway in every wall that two rooms share."""
    doors = []
    for one, first in enumerate(rooms):
        for other, second in enumerate(rooms[one + 1 :], one + 1):
            if first.left == second.left and first.back == second.front:
                x = float(rng.uniform(first.left + 1.0, first.right - 1.0))
                doors.append(Gap(round(x, 2), first.back, True, (one, other)))
            elif first.right == second.left and first.front == second.front:
                y = (first.front + first.back) / 2 + float(rng.uniform(-0.2, 0.2))
                doors.append(Gap(first.right, round(y, 2), False, (one, other)))
    return tuple(doors)


def _windows(rooms: Sequence[Room], doors: Sequence[Gap]) -> tuple[Gap, ...]:
    """Return a window in the middle of each outer wall."""
    windows = []
    for index, room in enumerate(rooms):
        x, y = (room.left + room.right) / 2, (room.front + room.back) / 2
        sides = ((x, room.front, True), (x, room.back, True), (room.left, y, False),
                 (room.right, y, False))  # fmt: skip
        for at_x, at_y, along_x in sides:
            shared = any(
                index in door.rooms
                and door.along_x == along_x
                and (door.y == at_y if along_x else door.x == at_x)
                for door in doors
            )
            if not shared:
                windows.append(Gap(at_x, at_y, along_x, (index,)))
    return tuple(windows)


def _walls(index: int, room: Room) -> list[_Wall]:
    """Return the four walls; `yaw` is the rotation of a fixture at the wall."""
    wide, deep = room.right - room.left, room.back - room.front
    long, side = [(MARGIN, wide - MARGIN)], [(CORNER, deep - CORNER)]
    return [
        _Wall(index, room.left, room.back, 0.0, [*long]),
        _Wall(index, room.right, room.front, math.pi, [*long]),
        _Wall(index, room.left, room.front, math.pi / 2, [*side]),
        _Wall(index, room.right, room.back, -math.pi / 2, [*side]),
    ]


def _keep_free(walls: Sequence[_Wall], door: Gap) -> None:
    """Remove the segment in front of a doorway from the free segments of its wall."""
    for wall in walls:
        cos, sin = math.cos(wall.yaw), math.sin(wall.yaw)
        along = (door.x - wall.x) * cos + (door.y - wall.y) * sin
        away = (door.x - wall.x) * sin - (door.y - wall.y) * cos
        if abs(away) < 0.01 and along > 0:
            wall.cut(along, DOOR_CLEARANCE)


def _furnish(
    rng: np.random.Generator, walls: Sequence[_Wall], kinds: Sequence[str]
) -> list[tuple[str, int, float, float, float]]:
    """Place fixtures along the walls, the widest first; those without space are skipped."""
    placed = []
    for kind in sorted(shuffled(rng, kinds), key=lambda each: -FIXTURES[each].width):
        width, depth = FIXTURES[kind].width, FIXTURES[kind].depth
        options = [
            (wall, place)
            for wall in walls
            for place, (start, end) in enumerate(wall.free)
            if end - start >= width
        ]
        if not options:
            continue
        wall, place = options[int(rng.integers(len(options)))]
        start, end = wall.free[place]
        # Place the fixture at one end of the segment, so that the rest is one segment.
        at = start if rng.random() < 0.5 else end - width
        x, y = wall.point(at + width / 2, depth / 2 + 0.01)
        wall.cut(at + width / 2, width / 2 + MARGIN)
        placed.append((kind, wall.room, x, y, wall.yaw))
    return placed


def _named(
    rng: np.random.Generator, placed: Sequence[tuple[str, int, float, float, float]]
) -> tuple[Fixture, ...]:
    """Return the fixtures with names whose numbers do not reveal their positions."""
    counts: dict[str, int] = {}
    fixtures = []
    for kind, room, x, y, yaw in shuffled(rng, placed):
        counts[kind] = counts.get(kind, 0) + 1
        fixture = Fixture(numbered(kind, counts[kind]), kind, room, x, y, yaw)
        fixtures.append(fixture)
        if kind == "Sink":
            counts[_FAUCET] = counts.get(_FAUCET, 0) + 1
            tap = fixture.place((0.0, FIXTURES[kind].depth / 2 - 0.12, FIXTURES[kind].height))
            fixtures.append(
                Fixture(numbered(_FAUCET, counts[_FAUCET]), _FAUCET, room, *tap[:2], yaw,
                        fixture.name)
            )  # fmt: skip
    return tuple(fixtures)


def numbered(kind: str, number: int) -> str:
    """Return the name of an instance: the first has none, the second ends with ``_2``."""
    return kind if number == 1 else f"{kind}_{number}"
