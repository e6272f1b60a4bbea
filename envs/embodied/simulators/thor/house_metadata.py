"""Reports the state of House in the form of AI2-THOR's metadata."""

from __future__ import annotations

import math
from typing import Any

from ...world.house import FurnishedHouse, Point
from ...world.render.camera import camera_of, item_position
from ...world.state import FLOOR, HouseState

CAMERA_HEIGHT = 1.575
"""Height of the camera in meters, as in AI2-THOR; House's own camera moves up and down."""

AGENT_HEIGHT = 0.9
"""Height in meters of the center of the agent above the floor."""

_FLOOR_ID = "Floor|+00.00|+00.00|+00.00"
_HAND = 0.4


class HouseMetadata:
    """Reports the agent and the objects of a house.

    Args:
        house: The house, whose objects must be numbered as ai2thor's.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        self.house = house
        self.state = HouseState(house)
        self._names = sorted([*house.fixtures, *house.items], key=_order)
        self._ids = {name: self._id(name) for name in self._names}
        self._by_id = {identity: name for name, identity in self._ids.items()}

    def agent(self) -> dict[str, Any]:
        """Return the pose of the agent."""
        x, y = self._standing()
        target = self._looked_at()
        turn = math.degrees(math.atan2(target[0] - x, target[1] - y)) % 360
        down = elevation((x, y), target)
        return {
            "position": {"x": x, "y": AGENT_HEIGHT, "z": y},
            "rotation": {"x": 0.0, "y": turn, "z": 0.0},
            "cameraHorizon": down,
            "isStanding": True,
        }

    def objects(self) -> list[dict[str, Any]]:
        """Return the metadata of all objects, those of a type in the order of their numbers."""
        floor = {
            **self._common("Floor", _FLOOR_ID, (0.0, 0.0, 0.0), visible=False),
            "receptacle": True,
            "receptacleObjectIds": [
                self._ids[name]
                for fixture in self.house.fixtures
                for name in self.state.contents(f"{FLOOR}{fixture}")
            ],
        }
        return [floor, *map(self._object, self._names)]

    def inventory(self) -> list[dict[str, Any]]:
        """Return the object in hand."""
        held = self.state.held
        kind = self.house.items[held].kind if held else ""
        return [{"objectId": self._ids[held], "objectType": kind}] if held else []

    def _object(self, name: str) -> dict[str, Any]:
        state, identity = self.state, self._ids[name]
        seen = name == state.held or self._is_usable(name)
        if name in self.house.fixtures:
            kind, spec = self.house.fixtures[name].kind, self.house.fixtures[name].type
            abilities = {
                "openable": bool(spec.opening),
                "isOpen": name in state.open,
                "toggleable": spec.switch,
                "isToggled": name in state.on,
            }
        else:
            kind, item = self.house.items[name].kind, self.house.items[name].type
            abilities = {
                "pickupable": True,
                "isPickedUp": name == state.held,
                "sliceable": item.sliced,
                "isSliced": name in state.sliced,
                "dirtyable": item.washed,
                "isDirty": name in state.dirty,
            }
        heat = "Hot" if name in state.hot else "Cold" if name in state.cold else "RoomTemp"
        return {
            **self._common(kind, identity, self._position(name), seen),
            "receptacle": state.can_hold(name),
            "receptacleObjectIds": [self._ids[each] for each in state.contents(name)],
            "parentReceptacles": self._parents(name),
            "temperature": heat,
            "ObjectTemperature": heat,
            **abilities,
        }

    def _common(self, kind: str, identity: str, at: Point, visible: bool) -> dict[str, Any]:
        x, y, up = at
        agent = self._standing()
        return {
            "objectId": identity,
            "objectType": kind,
            "name": self._by_id.get(identity, kind),
            "position": {"x": x, "y": up, "z": y},
            "rotation": {"x": 0.0, "y": 0.0, "z": 0.0},
            "visible": visible,
            "distance": math.dist(agent, (x, y)),
            "pickupable": False,
            "openable": False,
            "toggleable": False,
            "sliceable": False,
            "parentReceptacles": None,
        }

    def _parents(self, name: str) -> list[str] | None:
        holder = self.state.holder_of(name) if name in self.house.items else ""
        if not holder:
            return None
        if holder.startswith(FLOOR):
            return [_FLOOR_ID]
        return [self._ids[holder], *(self._parents(holder) or [])]

    def _id(self, name: str) -> str:
        fixture = self.house.fixtures.get(name)
        kind = fixture.kind if fixture else self.house.items[name].kind
        x, y, up = self._position(name)
        return f"{kind}|{x:+06.2f}|{up:+06.2f}|{y:+06.2f}"

    # ------------------------------------------------------------------ positions in House

    def _position(self, name: str) -> Point:
        fixture = self.house.fixtures.get(name)
        if fixture is not None:
            height = fixture.type.height
            return fixture.place((0.0, 0.0, height + 0.1 if fixture.host else height / 2))
        found = item_position(self.state, name)
        if found is not None:
            return found[0], found[1], found[2] + 0.05
        x, y = self._standing()  # in hand, or inside the object in hand
        return x, y, AGENT_HEIGHT + _HAND

    def _standing(self) -> tuple[float, float]:
        if self.state.at:
            return self.house.fixtures[self.state.at].standpoint
        x, y, _ = camera_of(self.state).eye
        return x, y

    def _looked_at(self) -> Point:
        focus = self.state.focus
        if not self.state.at:
            return camera_of(self.state).target
        return self._position(self.state.at if focus == self.state.held else focus)

    def _at(self, name: str) -> bool:
        """Return whether an object or fixture is used from the position of the agent."""
        return bool(self.state.at) and self.state.fixture_of(name) == self.state.at

    def _is_usable(self, name: str) -> bool:
        is_shut_in = name in self.house.items and self.state.is_shut_in(name)
        return self._at(name) and not is_shut_in


def _order(name: str) -> tuple[str, int]:
    kind, _, number = name.partition("_")
    return kind, int(number or 1)


def elevation(eye: tuple[float, float], target: Point) -> float:
    """Return the angle below the horizon at which a target is seen, in degrees."""
    away = math.dist(eye, target[:2])
    return math.degrees(math.atan2(CAMERA_HEIGHT - target[2], away))
