"""Represents a house as a MuJoCo model, with the state of the house.

The geoms of a room are in the MuJoCo group with the room's index, so that a frame renders only the
visible rooms. There are no textures or meshes, so that one rendering context serves all houses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..fixtures import DRAWER_TRAVEL
from ..house import Fixture, FurnishedHouse, Gap, Point, Room
from ..state import HouseState
from .camera import FIELD_OF_VIEW, Camera, item_position, rim_height
from .fixture_shapes import door_geoms, fixture_geoms
from .geoms import Geom, box
from .item_shapes import hand_geoms, item_geoms

LARGEST_FRAME = 500
"""Side of the largest frame in pixels."""

_WALL_HEIGHT = 2.6
_DOOR_WIDTH, _DOOR_HEIGHT = 0.9, 2.05
_AWAY = (0.0, 0.0, -50.0)
_HAND = "the hand"
_FLOORS = ((0.72, 0.60, 0.45), (0.62, 0.62, 0.60), (0.55, 0.45, 0.36), (0.75, 0.72, 0.66))
_WALLS = ((0.90, 0.88, 0.82), (0.80, 0.86, 0.88), (0.88, 0.82, 0.78), (0.84, 0.88, 0.80))

_HEAD = """<mujoco><compiler angle="degree"/><option gravity="0 0 0"/>
<visual><quality shadowsize="0" offsamples="0" numslices="20" numstacks="12" numquads="1"/>
<headlight ambient=".42 .42 .42" diffuse=".42 .42 .42" specular=".1 .1 .1"/>
<global offwidth="{side}" offheight="{side}" fovy="{fov}"/><map znear="0.005" zfar="30"/></visual>
<asset><material name="shiny" specular="1" shininess="0.9"/>
<material name="glass" specular="0.8" shininess="0.8"/>
<material name="glow" emission="1"/></asset>
<worldbody><light pos="{x} {y} 2.5" dir="0 0.2 -1" diffuse=".35 .35 .35" castshadow="false"
directional="true"/>"""


class _Bodies(NamedTuple):
    """Holds the parts of an object or fixture in the model."""

    mocap: int  # the index of its moving body, -1 if it has none
    geoms: tuple[int, ...]  # ids
    states: tuple[str, ...]  # the state in which each geom is visible


class HouseScene:
    """Represents a house in MuJoCo.

    Attributes:
        model: The `mujoco.MjModel`.
        data: The `mujoco.MjData`.
        owners: The name of the object or fixture of each geom, ``""`` for walls and floors.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        from visenv.simulators.opengl import prepare_opengl

        prepare_opengl()
        import mujoco

        self.house = house
        self._named: dict[str, list[Geom]] = {}
        self.model: Any = mujoco.MjModel.from_xml_string(self._xml())
        self.data: Any = mujoco.MjData(self.model)
        self._bodies = {name: self._find(name, geoms) for name, geoms in self._named.items()}
        self.owners = [""] * int(self.model.ngeom)
        for name, bodies in self._bodies.items():
            for geom in bodies.geoms:
                self.owners[geom] = "" if name == _HAND else name.removeprefix("door of ")
        self._shown: dict[str, object] = {}

    # ------------------------------------------------------------------ the model

    def _xml(self) -> str:
        house = self.house
        middle = house.rooms[0]
        head = _HEAD.format(side=LARGEST_FRAME, fov=FIELD_OF_VIEW, x=middle.left, y=middle.front)
        parts = [head]
        for index, room in enumerate(house.rooms):
            shell = enumerate(_room_geoms(house, index, room))
            parts += [geom.xml(f"room{index}/{place}", index) for place, geom in shell]
        for name, fixture in house.fixtures.items():
            where = f'pos="{fixture.x:.4f} {fixture.y:.4f} 0" euler="0 0 {_degrees(fixture)}"'
            parts.append(self._body(name, where, [*fixture_geoms(fixture)], fixture.room))
            if fixture.type.opening:
                doors = door_geoms(fixture)
                parts.append(self._body(f"door of {name}", 'mocap="true"', doors, fixture.room))
        for name, item in house.items.items():
            parts.append(self._body(name, 'mocap="true"', [*item_geoms(item)], 0))
        parts.append(self._body(_HAND, 'mocap="true"', hand_geoms(), 0))
        return "".join([*parts, "</worldbody></mujoco>"])

    def _body(self, name: str, where: str, geoms: list[Geom], room: int) -> str:
        self._named[name] = geoms
        inside = "".join(geom.xml(f"{name}/{place}", room) for place, geom in enumerate(geoms))
        return f'<body name="{name}" {where}>{inside}</body>'

    def _find(self, name: str, geoms: list[Geom]) -> _Bodies:
        body = self.model.body(name)
        first = int(self.model.body_geomadr[body.id])
        mocap = int(self.model.body_mocapid[body.id])
        ids = tuple(range(first, first + len(geoms)))
        return _Bodies(mocap, ids, tuple(geom.state for geom in geoms))

    # ------------------------------------------------------------------ the state

    def update(self, state: HouseState, camera: Camera) -> None:
        """Move all objects to their places and show their states."""
        import mujoco

        for name, fixture in self.house.fixtures.items():
            self._update_fixture(state, name, fixture)
        for name in self.house.items:
            self._update_item(state, name, camera)
        self._update_hand(state, camera)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)

    def rooms_in_view(self, camera: Camera) -> list[int]:
        """Return the room of the camera, and those behind doorways that may be visible."""
        rooms = {camera.room}
        for door in self.house.doors:
            if camera.room not in door.rooms:
                continue
            angle = math.degrees(math.atan2(door.y - camera.eye[1], door.x - camera.eye[0]))
            turned = abs((angle - camera.azimuth + 180) % 360 - 180)
            near = math.dist(camera.eye[:2], (door.x, door.y)) < 1.2
            if near or turned < FIELD_OF_VIEW / 2 + 20:
                rooms |= {*door.rooms}
        return sorted(rooms)

    def _update_fixture(self, state: HouseState, name: str, fixture: Fixture) -> None:
        is_open, is_on = name in state.open, name in state.on
        if self._shown.get(name) == (is_open, is_on):
            return
        self._shown[name] = (is_open, is_on)
        shown = {"", "on" if is_on else "off"}
        self._show(self._bodies[name], shown, fixture.room)
        if not fixture.type.opening:
            return
        door = self._bodies[f"door of {name}"]
        self._show(door, shown, fixture.room)
        if fixture.type.opening == "drawer":
            at, turn = fixture.place((0.0, -DRAWER_TRAVEL * is_open, 0.0)), fixture.yaw
        else:
            wide, deep = fixture.type.width / 2, fixture.type.depth / 2
            at = fixture.place((-wide, -deep, 0.0))
            turn = fixture.yaw - math.radians(95.0) * is_open
        self._move(door, at, turn)

    def _update_item(self, state: HouseState, name: str, camera: Camera) -> None:
        at, yaw, room = self._pose(state, name, camera)
        states = {"", "sliced" if name in state.sliced else "whole"}
        states |= {word for word in ("dirty", "hot", "cold") if name in getattr(state, word)}
        key = (at, yaw, room, frozenset(states))
        if self._shown.get(name) == key:
            return
        self._shown[name] = key
        bodies = self._bodies[name]
        self._show(bodies, states, room)
        self._move(bodies, at, yaw)

    def _pose(
        self, state: HouseState, name: str, camera: Camera
    ) -> tuple[tuple[float, ...], float, int]:
        """Return the position, the rotation and the room of an object."""
        item = self.house.items[name]
        position = item_position(state, name)
        if position is not None:
            fixture = self.house.fixtures[state.fixture_of(name)]
            return position, fixture.yaw + item.yaw, fixture.room
        right, back, up = _hand_position(camera)
        while name != state.held:  # it is carried in another object
            name = state.holder_of(name)
            up += rim_height(self.house, name)
        return (right, back, up), _hand_yaw(camera), camera.room

    def _update_hand(self, state: HouseState, camera: Camera) -> None:
        """Show the hand below the object that it holds."""
        hand = self._bodies[_HAND]
        at = _hand_position(camera) if state.held else _AWAY
        self._show(hand, {""}, camera.room)
        self._move(hand, at, _hand_yaw(camera))

    def _show(self, bodies: _Bodies, states: set[str], room: int) -> None:
        for geom, needed in zip(bodies.geoms, bodies.states, strict=True):
            glass = self.model.geom_rgba[geom, 3]
            visible = 0.55 if 0.5 < glass < 0.6 else 1.0
            self.model.geom_rgba[geom, 3] = visible if needed in states else 0.0
            self.model.geom_group[geom] = room

    def _move(self, bodies: _Bodies, at: tuple[float, ...], yaw: float) -> None:
        self.data.mocap_pos[bodies.mocap] = at
        self.data.mocap_quat[bodies.mocap] = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))


def _hand_position(camera: Camera) -> Point:
    """Return the position of the base of the object in hand, at the lower right of the frame."""
    x, y, z = (
        eye + 0.5 * ahead + 0.16 * aside - 0.22 * above
        for eye, ahead, aside, above in zip(camera.eye, *camera.axes, strict=True)
    )
    return x, y, z


def _hand_yaw(camera: Camera) -> float:
    return math.radians(camera.azimuth - 90.0)


def _degrees(fixture: Fixture) -> str:
    return f"{math.degrees(fixture.yaw):.4f}"


def _room_geoms(house: FurnishedHouse, index: int, room: Room) -> Iterator[Geom]:
    """Yield floor, ceiling, walls with doorways, door leaves and windows of a room."""
    rng = np.random.default_rng((house.palette, index))
    floor, wall = _FLOORS[int(rng.integers(4))], _WALLS[int(rng.integers(4))]
    low, high = (room.left, room.front), (room.right, room.back)
    yield box((*low, -0.05), (*high, 0.0), floor)
    yield box((*low, _WALL_HEIGHT), (*high, _WALL_HEIGHT + 0.05), (0.93, 0.93, 0.92))
    # A skirting and stripes on the floor make the perspective visible.
    for place in range(1, 8):
        x = room.left + (room.right - room.left) * place / 8
        yield box((x - 0.01, room.front, 0.0), (x + 0.01, room.back, 0.002),
                  tuple(each * 0.85 for each in floor))  # fmt: skip
    for along_x, at in ((True, room.front), (True, room.back), (False, room.left),
                        (False, room.right)):  # fmt: skip
        start, end = (room.left, room.right) if along_x else (room.front, room.back)
        gaps = [_along(door, along_x) for door in house.doors
                if index in door.rooms and _is_on(door, along_x, at)]  # fmt: skip
        inward = 0.02 if at in (room.front, room.left) else -0.02
        for piece in _pieces(start, end, gaps):
            yield _panel(along_x, at, inward, piece, (0.0, _WALL_HEIGHT), wall)
        for gap in gaps:
            span = (gap - _DOOR_WIDTH / 2, gap + _DOOR_WIDTH / 2)
            yield _panel(along_x, at, inward, span, (_DOOR_HEIGHT, _WALL_HEIGHT), wall)
            for post in span:
                yield _panel(along_x, at, inward * 2, (post - 0.04, post + 0.04),
                             (0.0, _DOOR_HEIGHT + 0.04), (0.5, 0.35, 0.22))  # fmt: skip
        for window in house.windows:
            if window.rooms == (index,) and _is_on(window, along_x, at):
                middle = _along(window, along_x)
                yield _panel(along_x, at, inward * 2, (middle - 0.75, middle + 0.75), (1.35, 2.25),
                             (0.95, 0.95, 0.93))  # fmt: skip
                yield _panel(along_x, at, inward * 2.5, (middle - 0.7, middle + 0.7), (1.4, 2.2),
                             (0.55, 0.78, 0.98))  # fmt: skip


def _along(gap: Gap, along_x: bool) -> float:
    return gap.x if along_x else gap.y


def _is_on(gap: Gap, along_x: bool, at: float) -> bool:
    return gap.along_x == along_x and (gap.y if along_x else gap.x) == at


def _pieces(start: float, end: float, gaps: list[float]) -> Iterator[tuple[float, float]]:
    """Yield the segments of a wall between its doorways."""
    for gap in sorted(gaps):
        yield start, gap - _DOOR_WIDTH / 2
        start = gap + _DOOR_WIDTH / 2
    yield start, end


def _panel(
    along_x: bool,
    at: float,
    inward: float,
    span: tuple[float, float],
    heights: tuple[float, float],
    color: tuple[float, float, float],
) -> Geom:
    """Return a thin box along a wall, on the side of its room."""
    near, far = sorted((at, at + inward))
    if along_x:
        return box((span[0], near, heights[0]), (span[1], far, heights[1]), color)
    return box((near, span[0], heights[0]), (far, span[1], heights[1]), color)
