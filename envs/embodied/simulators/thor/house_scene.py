"""HouseScene: a house as a scene of AI2-THOR: poses, metadata of objects, and actions on them.

The agent stands at the standpoints of the fixtures. From one of them it can use, and `visible`
reports, the fixture and what is in it unless it is closed. What is nearest to the middle of its
view is what House's camera looks at. House's rules decide what an action does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...world.house import House, Point
from ...world.render.camera import camera_of, item_position
from ...world.state import FLOOR, OK, Place, State

CAMERA_HEIGHT = 1.575
"""Meters above the floor, as in AI2-THOR; House's own camera moves up and down to see."""

AGENT_HEIGHT = 0.9
"""Meters of the middle of the agent above the floor."""

_FLOOR_ID = "Floor|+00.00|+00.00|+00.00"
_SAME_PLACE = 0.02
_HAND = 0.4

Answer = tuple[str, Any]
"""Why an action failed, ``""`` if it did not; and what it returns."""


class HouseScene:
    """Serves one house.

    Args:
        house: The house, whose objects must be named as ai2thor's are numbered.

    Attributes:
        state: Its state.
    """

    def __init__(self, house: House) -> None:
        self.house = house
        self.state = State(house)
        self._names = sorted([*house.fixtures, *house.items], key=_order)
        self._ids = {name: self._id(name) for name in self._names}
        self._by_id = {identity: name for name, identity in self._ids.items()}

    def perform(self, action: Mapping[str, Any]) -> Answer:
        """Carry out an action of ai2thor."""
        name = action["action"]
        method = _ACTIONS.get(name)
        if method is None:
            return f"Invalid action: {name}", None
        return method(self, action)

    # ------------------------------------------------------------------ metadata

    def agent(self) -> dict[str, Any]:
        """Return the pose of the agent."""
        x, y = self._standing()
        target = self._looked_at()
        turn = math.degrees(math.atan2(target[0] - x, target[1] - y)) % 360
        down = _elevation((x, y), target)
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
        """Return what is in hand."""
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

    # ------------------------------------------------------------------ places, as House has them

    def _position(self, name: str) -> Point:
        fixture = self.house.fixtures.get(name)
        if fixture is not None:
            height = fixture.type.height
            return fixture.place((0.0, 0.0, height + 0.1 if fixture.host else height / 2))
        found = item_position(self.state, name)
        if found is not None:
            return found[0], found[1], found[2] + 0.05
        x, y = self._standing()  # in hand, or in what is in hand
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
        """Return whether something belongs to where the agent stands."""
        return bool(self.state.at) and self.state.fixture_of(name) == self.state.at

    def _is_usable(self, name: str) -> bool:
        is_shut_in = name in self.house.items and self.state.is_shut_in(name)
        return self._at(name) and not is_shut_in

    # ------------------------------------------------------------------ actions

    def reachable(self, action: Mapping[str, Any]) -> Answer:
        """Return the standpoints."""
        points = [each.standpoint for each in self.house.fixtures.values() if not each.host]
        return "", [{"x": x, "y": AGENT_HEIGHT, "z": y} for x, y in points]

    def teleport(self, action: Mapping[str, Any]) -> Answer:
        """Go to a standpoint and look at what is nearest to the middle of the view."""
        x, y = float(action["x"]), float(action["z"])
        turn, down = float(action["rotation"]["y"]), float(action["horizon"])
        here = {
            name
            for name, each in self.house.fixtures.items()
            if not each.host and math.dist(each.standpoint, (x, y)) < _SAME_PLACE
        }
        seen = [name for name in self._names if self.state.fixture_of(name) in here]
        if not seen:
            return f"The agent cannot stand at ({x:.2f}, {y:.2f}).", None
        self.state.go_to(
            min(seen, key=lambda name: _angle((x, y), turn, down, self._position(name)))
        )
        return "", None

    def pick_up(self, action: Mapping[str, Any]) -> Answer:
        """Take an object in hand."""
        return self._use(action, "objectId", self.state.pick, self.house.items)

    def put_down(self, action: Mapping[str, Any]) -> Answer:
        """Put the object in hand into a receptacle."""
        return self._use(action, "receptacleObjectId", self.state.put, self._ids)

    def drop(self, action: Mapping[str, Any]) -> Answer:
        """Drop the object in hand on the floor."""
        return _answer(self.state.drop())

    def open_up(self, action: Mapping[str, Any]) -> Answer:
        """Open a fixture."""
        return self._use(action, "objectId", self.state.open_up, self.house.fixtures)

    def close_up(self, action: Mapping[str, Any]) -> Answer:
        """Close a fixture."""
        return self._use(action, "objectId", self.state.close_up, self.house.fixtures)

    def turn(self, action: Mapping[str, Any]) -> Answer:
        """Turn a fixture on or off."""
        on = action["action"] == "ToggleObjectOn"
        return self._use(
            action, "objectId", lambda name: self.state.turn(name, on), self.house.fixtures
        )

    def slice(self, action: Mapping[str, Any]) -> Answer:
        """Slice an object."""
        return self._use(action, "objectId", self.state.slice, self.house.items)

    def set_toggles(self, action: Mapping[str, Any]) -> Answer:
        """Turn all objects of some types on or off."""
        for each in action["objectToggles"]:
            names = {name for name in self.house.of_kind(each["objectType"])
                     if name in self.house.fixtures}  # fmt: skip
            self.state.on = self.state.on | names if each["isOn"] else self.state.on - names
        return "", None

    def set_states(self, action: Mapping[str, Any]) -> Answer:
        """Make everything that can be washed dirty, or leave it (nothing can be filled)."""
        if action["StateChange"] == "CanBeDirty":
            self.state.dirty |= {
                name for name, each in self.house.items.items() if each.type.washed
            }
        return "", None

    def set_poses(self, action: Mapping[str, Any]) -> Answer:
        """Put objects into the slots that are nearest to given positions."""
        places: dict[str, Place] = {}
        for pose in action["objectPoses"]:
            name, at = pose["objectName"], pose["position"]
            if name not in self.house.items:
                return f"There is no object {name}.", None
            places[name] = self._nearest_slot((at["x"], at["z"], at["y"]))
        if len({*places.values()}) < len(places):
            return "Two objects are at one place.", None
        self.state.places = places
        return "", None

    def _nearest_slot(self, at: Point) -> Place:
        slots = [
            (math.dist(at, each.slot(index, name in self.state.open)), name, index)
            for name, each in self.house.fixtures.items()
            for index in range(each.type.slots)
        ]
        _, name, index = min(slots)
        return Place(name, index)

    def _use(
        self,
        action: Mapping[str, Any],
        key: str,
        operation: Callable[[str], str],
        names: Sequence[str] | Mapping[str, Any],
    ) -> Answer:
        name = self._by_id.get(action[key], "")
        if name not in names:
            return f"Object ID {action[key]} appears to be invalid for {action['action']}.", None
        if not self._is_usable(name):
            return f"{action[key]} is not visible.", None
        return _answer(operation(name))


_ACTIONS: Mapping[str, Callable[[HouseScene, Mapping[str, Any]], Answer]] = {
    "GetReachablePositions": HouseScene.reachable,
    "TeleportFull": HouseScene.teleport,
    "PickupObject": HouseScene.pick_up,
    "PutObject": HouseScene.put_down,
    "DropHandObject": HouseScene.drop,
    "OpenObject": HouseScene.open_up,
    "CloseObject": HouseScene.close_up,
    "ToggleObjectOn": HouseScene.turn,
    "ToggleObjectOff": HouseScene.turn,
    "SliceObject": HouseScene.slice,
    "SetObjectToggles": HouseScene.set_toggles,
    "SetStateOfAllObjects": HouseScene.set_states,
    "SetObjectPoses": HouseScene.set_poses,
    "Pass": lambda scene, action: ("", None),
}


def _answer(code: str) -> Answer:
    return ("", None) if code == OK else (f"The house refuses: {code}.", None)


def _order(name: str) -> tuple[str, int]:
    kind, _, number = name.partition("_")
    return kind, int(number or 1)


def _elevation(eye: tuple[float, float], target: Point) -> float:
    """Return how far down a target is, in degrees."""
    away = math.dist(eye, target[:2])
    return math.degrees(math.atan2(CAMERA_HEIGHT - target[2], away))


def _angle(eye: tuple[float, float], turn: float, down: float, target: Point) -> float:
    """Return the angle between a direction of view and a target, in degrees."""
    ahead = math.degrees(math.atan2(target[0] - eye[0], target[1] - eye[1]))
    sideways = (ahead - turn + 180) % 360 - 180
    return math.hypot(sideways, _elevation(eye, target) - down)
