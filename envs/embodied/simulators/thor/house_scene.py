"""Serves a house as a scene of AI2-THOR: poses, metadata of objects, and actions on them.

The agent stands at the standpoints of the fixtures. From a standpoint it can use the fixture and,
unless it is closed, the objects in it; `visible` reports the same. House's camera looks at the
object nearest to the center of the view. House's rules determine the results of actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...world.house import Point
from ...world.state import OK, ItemPlace
from .house_metadata import AGENT_HEIGHT, HouseMetadata, elevation

_SAME_PLACE = 0.02

Answer = tuple[str, Any]
"""The reason why an action failed, ``""`` if it succeeded, and its return value."""


class ThorHouse(HouseMetadata):
    """Serves one house.

    The arguments and attributes are those of `HouseMetadata`.
    """

    def perform(self, action: Mapping[str, Any]) -> Answer:
        """Execute an action of ai2thor."""
        name = action["action"]
        method = _ACTIONS.get(name)
        if method is None:
            return f"Invalid action: {name}", None
        return method(self, action)

    # ------------------------------------------------------------------ actions

    def reachable(self, action: Mapping[str, Any]) -> Answer:
        """Return the standpoints."""
        points = [each.standpoint for each in self.house.fixtures.values() if not each.host]
        return "", [{"x": x, "y": AGENT_HEIGHT, "z": y} for x, y in points]

    def teleport(self, action: Mapping[str, Any]) -> Answer:
        """Move to a standpoint and look at the object nearest to the center of the view."""
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
        """Make all washable objects dirty, or leave them; nothing can be filled."""
        if action["StateChange"] == "CanBeDirty":
            self.state.dirty |= {
                name for name, each in self.house.items.items() if each.type.washed
            }
        return "", None

    def set_poses(self, action: Mapping[str, Any]) -> Answer:
        """Put objects into the slots that are nearest to given positions."""
        places: dict[str, ItemPlace] = {}
        for pose in action["objectPoses"]:
            name, at = pose["objectName"], pose["position"]
            if name not in self.house.items:
                return f"There is no object {name}.", None
            places[name] = self._nearest_slot((at["x"], at["z"], at["y"]))
        if len({*places.values()}) < len(places):
            return "Two objects are at one place.", None
        self.state.places = places
        return "", None

    def _nearest_slot(self, at: Point) -> ItemPlace:
        slots = [
            (math.dist(at, each.slot(index, name in self.state.open)), name, index)
            for name, each in self.house.fixtures.items()
            for index in range(each.type.slots)
        ]
        _, name, index = min(slots)
        return ItemPlace(name, index)

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


_ACTIONS: Mapping[str, Callable[[ThorHouse, Mapping[str, Any]], Answer]] = {
    "GetReachablePositions": ThorHouse.reachable,
    "TeleportFull": ThorHouse.teleport,
    "PickupObject": ThorHouse.pick_up,
    "PutObject": ThorHouse.put_down,
    "DropHandObject": ThorHouse.drop,
    "OpenObject": ThorHouse.open_up,
    "CloseObject": ThorHouse.close_up,
    "ToggleObjectOn": ThorHouse.turn,
    "ToggleObjectOff": ThorHouse.turn,
    "SliceObject": ThorHouse.slice,
    "SetObjectToggles": ThorHouse.set_toggles,
    "SetStateOfAllObjects": ThorHouse.set_states,
    "SetObjectPoses": ThorHouse.set_poses,
    "Pass": lambda scene, action: ("", None),
}


def _answer(code: str) -> Answer:
    return ("", None) if code == OK else (f"The house refuses: {code}.", None)


def _angle(eye: tuple[float, float], turn: float, down: float, target: Point) -> float:
    """Return the angle between a direction of view and a target, in degrees."""
    ahead = math.degrees(math.atan2(target[0] - eye[0], target[1] - eye[1]))
    sideways = (ahead - turn + 180) % 360 - 180
    return math.hypot(sideways, elevation(eye, target) - down)
