"""Places the agent's camera where the agent can stand, facing the object that it looks at."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..fixtures import DRAWER_TRAVEL, SHELVES
from ..house import STANDING, Fixture, FurnishedHouse, Point, item_box
from ..items import SIZES
from ..state import FLOOR, HouseState

FIELD_OF_VIEW = 60.0
"""Field of view in degrees, vertical and horizontal, because frames are square."""

EYE = 1.5
"""Height in meters above the floor; the agent bends down to look at objects below 0.9 m."""

_LOWEST_EYE = 0.75
_ABOVE = 0.45
_NEAR = 0.35
_FROM_ABOVE = frozenset({"Drawer", "Bathtub", "Sink", "GarbageCan"})
_BODY = 0.15


class Camera(NamedTuple):
    """Holds the position and the target, which is in the center of the frame, in meters."""

    eye: Point
    target: Point
    room: int

    @property
    def azimuth(self) -> float:
        """Return the direction of view about the vertical axis, degrees."""
        return math.degrees(math.atan2(self.target[1] - self.eye[1], self.target[0] - self.eye[0]))

    @property
    def distance(self) -> float:
        """Return the distance between the eye and the target, meters."""
        return math.dist(self.eye, self.target)

    @property
    def elevation(self) -> float:
        """Return the direction of view above the horizon, degrees."""
        return math.degrees(math.asin((self.target[2] - self.eye[2]) / self.distance))

    @property
    def axes(self) -> tuple[Point, Point, Point]:
        """Return unit vectors to the front, to the right and up."""
        length = self.distance
        front = tuple((b - a) / length for a, b in zip(self.eye, self.target, strict=True))
        flat = math.hypot(front[0], front[1])
        right = (front[1] / flat, -front[0] / flat, 0.0)
        up = (
            right[1] * front[2],
            -right[0] * front[2],
            right[0] * front[1] - right[1] * front[0],
        )
        return (front[0], front[1], front[2]), right, up


def camera_of(state: HouseState) -> Camera:
    """Return the camera of a state."""
    house = state.house
    if not state.at:
        return _first_view(house)
    fixture = house.fixtures[state.at]
    focus = state.focus
    if focus in house.items and focus != state.held:
        return _toward_item(state, fixture, focus)
    if focus in house.fixtures and house.fixtures[focus].host:
        tap = house.fixtures[focus]
        return _at(fixture, (0.0, 0.0, fixture.type.height + 0.1), 0.75, tap.room)
    return _toward_fixture(state, fixture)


def slot_depth(state: HouseState, fixture: Fixture, slot: int) -> float:
    """Return the depth of a slot in the view after navigating to its fixture, in meters.

    The size of an object in a frame is inversely proportional to its depth.
    """
    camera = _toward_fixture(state, fixture)
    front, *_ = camera.axes
    point = fixture.slot(slot, fixture.name in state.open)
    return sum((a - b) * c for a, b, c in zip(point, camera.eye, front, strict=True))


def _first_view(house: FurnishedHouse) -> Camera:
    """Return the view from the center of the first room."""
    room = house.rooms[0]
    x, y = (room.left + room.right) / 2, (room.front + room.back) / 2
    angle = house.palette % 4 * math.pi / 2 + 0.4
    return Camera((x, y, EYE), (x + 2 * math.cos(angle), y + 2 * math.sin(angle), 0.7), 0)


def _at(fixture: Fixture, local: Point, away: float, room: int) -> Camera:
    """Return a camera straight in front of a local point of a fixture."""
    right, _, up = local
    eye = min(EYE, max(_LOWEST_EYE, up + _ABOVE))
    if fixture.kind in _FROM_ABOVE and up > 0.2:  # its walls hide the objects inside
        eye = EYE
    x, y, z = fixture.place((right, -fixture.type.depth / 2 - away, eye))
    return Camera((x, y, z), fixture.place(local), room)


def item_position(state: HouseState, name: str) -> Point | None:
    """Return the center of an object's base; None if it is in hand or inside the object in hand."""
    house = state.house
    place = state.places.get(name)
    if place is None:
        return None
    if place.holder in house.items:
        below = item_position(state, place.holder)
        if below is None:
            return None
        return below[0], below[1], below[2] + rim_height(house, place.holder)
    if place.holder.startswith(FLOOR):
        return house.fixtures[place.holder.removeprefix(FLOOR)].floor_slot(place.slot)
    fixture = house.fixtures[place.holder]
    return fixture.slot(place.slot, place.holder in state.open)


def rim_height(house: FurnishedHouse, name: str) -> float:
    """Return the height at which an object lies in or on another one, in meters."""
    item = house.items[name]
    return item_box(item.kind, SIZES[item.look.size])[4]


def _toward_item(state: HouseState, fixture: Fixture, name: str) -> Camera:
    """Return a close view of an object, or of the closed fixture that hides it."""
    if state.is_shut_in(name):
        return _toward_fixture(state, fixture)
    position = item_position(state, name)
    if position is None:
        return _toward_fixture(state, fixture)
    right, back, up = _local(fixture, position)
    away = _NEAR + (0.3 if fixture.type.opening else 0.0)
    if state.holder_of(name).startswith(FLOOR):
        away = 0.75
    return _at(fixture, (right, back, up + 0.06), away, fixture.room)


def _local(fixture: Fixture, point: Point) -> Point:
    """Return a world position as right, back and up of a fixture."""
    x, y = point[0] - fixture.x, point[1] - fixture.y
    cos, sin = math.cos(fixture.yaw), math.sin(fixture.yaw)
    return x * cos + y * sin, y * cos - x * sin, point[2]


def _toward_fixture(state: HouseState, fixture: Fixture) -> Camera:
    """Return a view of a whole fixture, from a sufficient distance if the room allows it."""
    spec = fixture.type
    shelves = SHELVES.get(fixture.kind, (spec.height,))
    up = sum(shelves) / len(shelves) + 0.08
    if not spec.slots:
        up = spec.height - 0.15
    elif spec.opening == "door" and fixture.name not in state.open:
        up = spec.height - min(0.45, spec.height / 2)
    needed = spec.width / 2 / math.tan(math.radians(FIELD_OF_VIEW / 2)) - 0.2
    if fixture.kind in _FROM_ABOVE:
        needed = min(needed, 0.7)
    away = max(0.95 if spec.opening or not spec.slots else 0.6, needed)
    while away > STANDING and not _is_free(state.house, fixture, away):
        away -= 0.1
    back = 0.0 if not spec.slots or spec.opening else -spec.depth / 2 + 0.22
    if spec.opening == "drawer" and fixture.name in state.open:
        back = -DRAWER_TRAVEL
    return _at(fixture, (0.0, back, up), away, fixture.room)


def _is_free(house: FurnishedHouse, fixture: Fixture, away: float) -> bool:
    """Return whether an agent can stand at this distance from the front of a fixture."""
    x, y, _ = fixture.place((0.0, -fixture.type.depth / 2 - away, 0.0))
    for each in house.fixtures.values():
        if each.room != fixture.room or each.host:
            continue
        right, back, _ = _local(each, (x, y, 0.0))
        wide, deep = each.type.width / 2 + _BODY, each.type.depth / 2 + _BODY
        if abs(right) < wide and abs(back) < deep:
            return False
    return True
