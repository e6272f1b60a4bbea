"""Draws a map of the house from above, which viewers show and policies do not see."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

from visenv.types import Image

from .world.house import Fixture
from .world.items import COLORS
from .world.render.camera import camera_of, item_position
from .world.state import HouseState

SIDE = 320
"""Length of the longer side of a map, pixels."""

_PAPER, _WALL, _DOOR = (250, 248, 244), (60, 60, 60), (250, 248, 244)
_FIXTURE, _OPEN, _ON = (214, 206, 194), (170, 205, 235), (250, 214, 120)
_AGENT = (200, 30, 30)


def draw_map(state: HouseState) -> Image:
    """Draw a map with rooms, fixtures, objects in their colors, and the agent with its view.

    Open fixtures are blue, running ones yellow. The object in hand is drawn at the agent.
    """
    house = state.house
    wide = max(room.right for room in house.rooms)
    deep = max(room.back for room in house.rooms)
    scale = (SIDE - 9) / max(wide, deep)

    def at(x: float, y: float) -> tuple[float, float]:
        return 4 + x * scale, 4 + (deep - y) * scale

    size = (math.ceil(wide * scale) + 9, math.ceil(deep * scale) + 9)
    drawn = Pillow.new("RGB", size, _PAPER)
    pen = ImageDraw.Draw(drawn)
    for room in house.rooms:
        pen.rectangle((*at(room.left, room.back), *at(room.right, room.front)), outline=_WALL,
                      width=2)  # fmt: skip
    for door in house.doors:
        along = (0.45, 0.08) if door.along_x else (0.08, 0.45)
        low, high = (
            at(door.x - along[0], door.y + along[1]),
            at(door.x + along[0], door.y - along[1]),
        )
        pen.rectangle((*low, *high), fill=_DOOR)
    for name, fixture in house.fixtures.items():
        if not fixture.host:
            tap = house.tap_of(name)
            runs = name in state.on or (tap and tap in state.on)
            fill = _ON if runs else _OPEN if name in state.open else _FIXTURE
            pen.polygon([at(*corner) for corner in _corners(fixture)], fill=fill, outline=_WALL)
    camera = camera_of(state)
    eye, target = at(*camera.eye[:2]), at(*camera.target[:2])
    for name, item in house.items.items():
        position = item_position(state, name)
        x, y = at(*position[:2]) if position else eye
        color = tuple(round(255 * each) for each in COLORS[item.look.color])
        pen.ellipse((x - 3, y - 3, x + 3, y + 3), fill=color, outline=_WALL)
    pen.line((*eye, *target), fill=_AGENT, width=1)
    pen.ellipse((eye[0] - 4, eye[1] - 4, eye[0] + 4, eye[1] + 4), outline=_AGENT, width=2)
    return Image.from_pixels(np.asarray(drawn))


def _corners(fixture: Fixture) -> list[tuple[float, float]]:
    wide, deep = fixture.type.width / 2, fixture.type.depth / 2
    points = ((-wide, -deep), (wide, -deep), (wide, deep), (-wide, deep))
    return [fixture.place((right, back, 0.0))[:2] for right, back in points]
