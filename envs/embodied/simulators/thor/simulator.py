"""Defines the simulator that runs in the child process, with ai2thor's `Controller`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .actions import all_actions, parse_action
from .body import ActionResult
from .controller import PlayerProcess
from .scene import Point, Scene
from .skills import Skills

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ABILITIES = ("pickupable", "openable", "toggleable", "sliceable")


class ThorSimulator:
    """Executes EB-ALFRED's actions in AI2-THOR (`visenv.simulators.protocol.Simulator`)."""

    def start(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Start the player.

        Raises:
            ImportError: If ai2thor is not installed.
            SetupError: If there is no player.
        """
        self.player = PlayerProcess(options)
        return {"ai2thor": version("ai2thor"), "player": self.player.pid}

    def reset(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Restore a scene.

        Args:
            task: A mapping with three keys. ``scene`` is as in ALFRED's annotations:
                ``floor_plan`` (or ``house`` for a player that builds houses), ``object_toggles``,
                ``dirty_and_empty``, ``object_poses`` and ``init_action``. ``more`` has further
                names of actions, and ``forgets`` is an argument of `Skills`.

        Returns:
            ``actions``, the numbered actions, and the state as returned by `act`.
        """
        metadata = restore_scene(self.player, task["scene"])
        scene = Scene(metadata)
        self.actions = all_actions(scene.names, scene.receptacles, task["more"])
        self.skills = Skills(self.player, scene, self._reachable(), task["forgets"])
        self.taken: list[int] = []
        return {"actions": self.actions, "state": self._state()}

    def act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute one action.

        Args:
            request: ``action_id``.

        Returns:
            ``code`` and ``message`` of the `ActionResult`, and ``state``: the objects by name, the
            held, hot, cold, clean and delivered objects, and the position of the agent.
        """
        result = self._perform(int(request["action_id"]))
        return {"code": result.code, "message": result.message, "state": self._state()}

    def frames(self, request: Mapping[str, Any]) -> dict[str, NDArray[np.uint8]]:
        """Return the view of the agent."""
        return {"agent": self.player.frame()}

    def snapshot(self) -> bytes:
        """Return the actions that were taken so far."""
        return json.dumps(self.taken).encode()

    def restore(self, snapshot: bytes) -> dict[str, Any]:
        """Take the actions of a snapshot again."""
        result = ActionResult()
        for action_id in json.loads(snapshot):
            result = self._perform(action_id)
        return {"code": result.code, "message": result.message, "state": self._state()}

    def close(self) -> None:
        """End the player."""
        self.player.close()

    def _perform(self, action_id: int) -> ActionResult:
        self.taken.append(action_id)
        return self.skills.perform(parse_action(self.actions[action_id]))

    def _reachable(self) -> list[Point]:
        """Return the positions where the agent can stand."""
        metadata = self.player.do("GetReachablePositions")
        # Players before 2.3 use another key.
        found = metadata.get("actionReturn") or metadata.get("reachablePositions") or []
        return [(each["x"], each["y"], each["z"]) for each in found]

    def _state(self) -> dict[str, Any]:
        """Return the state of the scene as JSON."""
        skills, scene = self.skills, self.skills.scene
        tracker, name_of = skills.tracker, scene.name_of
        place = scene.metadata["agent"]["position"]
        return {
            "objects": {
                name: self._object(scene.id_of(name), kind)
                for kind, members in scene.names.items()
                for name in members
                if scene.id_of(name)
            },
            "agent": (place["x"], place["z"]),
            "held": name_of(scene.held) if scene.held else "",
            "hot": sorted(map(name_of, tracker.hot)),
            "cold": sorted(map(name_of, tracker.cold)),
            "clean": sorted(map(name_of, tracker.clean)),
            "delivered": sorted(tracker.delivered),
            "found": skills.found,
            "focus": skills.focus,
            "target": skills.target,
        }

    def _object(self, identity: str, kind: str) -> dict[str, Any]:
        scene = self.skills.scene
        each, holder = scene.by_id[identity], scene.holder_of(identity)
        return {
            "kind": kind,
            "at": scene.position(identity),
            "holder": scene.name_of(holder) if holder else "",
            "open": bool(each.get("isOpen")),
            "on": bool(each.get("isToggled")),
            "sliced": bool(each.get("isSliced")) or each["objectType"] != kind,
            "abilities": [
                *(key for key in _ABILITIES if each.get(key)),
                *(["receptacle"] if scene.is_receptacle(identity) else []),
            ],
            "below": scene.name_of(scene.basin_under(identity)) if kind == "Faucet" else "",
        }


def restore_scene(player: PlayerProcess, scene: Mapping[str, Any]) -> Mapping[str, Any]:
    """Load a scene and move its objects to their positions in ALFRED's annotation.

    Returns:
        The metadata of the restored scene.
    """
    house = scene.get("house")
    metadata = player.load(house if house is not None else scene["floor_plan"])
    if scene.get("object_toggles"):
        metadata = player.do("SetObjectToggles", objectToggles=scene["object_toggles"])
    if scene.get("dirty_and_empty"):
        player.do("SetStateOfAllObjects", StateChange="CanBeDirty", forceAction=True)
        metadata = player.do("SetStateOfAllObjects", StateChange="CanBeFilled", forceAction=False)
    if scene.get("object_poses"):
        metadata = player.do("SetObjectPoses", objectPoses=scene["object_poses"])
    if not metadata["lastActionSuccess"]:
        raise RuntimeError(f"the scene was not restored: {metadata.get('errorMessage')}")
    start = scene.get("init_action")
    return player.do(**start) if start else metadata
