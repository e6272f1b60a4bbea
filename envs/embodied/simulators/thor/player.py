"""Implements a player of AI2-THOR that serves House instead of Unity's scenes.

ai2thor starts it (``python -m … player``) with the arguments of a Unity player. It uses ai2thor's
FIFO protocol, and builds a house for the action ``CreateHouse``, as for ProcTHOR's houses.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...world.render import HouseRenderer
from ...world.tasks import TaskOptions, make_task
from .fifo import FifoConnection
from .house_scene import ThorHouse

PROCEDURAL = "Procedural"
"""The scene in which ai2thor builds houses."""

_SMOOTH = 7
"""The index of ai2thor's quality ``"Ultra"``, which smooths edges."""


class HousePlayer:
    """Replies to ai2thor's actions with events.

    Args:
        side: Side of a frame in pixels.
        smooth: Whether edges are smoothed.
    """

    def __init__(self, side: int, smooth: bool) -> None:
        self.side = side
        self.smooth = smooth
        self.scene: ThorHouse | None = None
        self.scene_name = PROCEDURAL
        self._renderer: HouseRenderer | None = None

    def load(self, seed: int, options: Mapping[str, Any]) -> None:
        """Build the house of a task."""
        fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each
                  for key, each in options.items()}  # fmt: skip
        house = make_task(seed, TaskOptions(**fields)).house
        self.scene, self._renderer = ThorHouse(house), HouseRenderer(house)

    def answer(self, action: Mapping[str, Any]) -> tuple[str, Any]:
        """Execute an action; return the error (``""`` if it succeeded) and the result."""
        name = action["action"]
        if name == "Reset":
            self.scene, self.scene_name = None, action["sceneName"]
        elif name == "CreateHouse":
            self.load(action["house"]["seed"], action["house"]["options"])
        elif name == "ChangeResolution":
            self.side = int(action["x"])
        elif name == "GetScenesInBuild":
            return "", [PROCEDURAL]
        elif name != "Initialize" and self.scene is not None:
            return self.scene.perform(action)
        elif name not in ("Initialize", "Pass"):
            return f"Invalid action: {name}", None
        return "", None

    def event(self, action: Mapping[str, Any], error: str, result: Any) -> dict[str, Any]:
        """Return the metadata of the event of an action."""
        scene = self.scene
        agent = {
            "agentId": 0,
            "screenWidth": self.side,
            "screenHeight": self.side,
            "sequenceId": action.get("sequenceId", 0),
            "sceneName": self.scene_name,
            "lastAction": action["action"],
            "lastActionSuccess": not error,
            "errorMessage": error,
            "errorCode": "",
            "actionReturn": result,
            "thirdPartyCameras": [],
            "colors": [],
            "objects": scene.objects() if scene else [],
            "inventoryObjects": scene.inventory() if scene else [],
            "agent": scene.agent() if scene else {},
        }
        return {
            "agents": [agent],
            "thirdPartyCameras": [],
            "activeAgentId": 0,
            "sequenceId": agent["sequenceId"],
        }

    def frame(self) -> Any:
        """Return the view of the agent, uint8 ``[side, side, 3]``; black without a house."""
        if self.scene is None or self._renderer is None:
            return np.zeros((self.side, self.side, 3), np.uint8)
        return self._renderer.frame(self.scene.state, self.side, self.smooth)

    def serve(self, connection: FifoConnection) -> None:
        """Reply to actions until ai2thor closes the pipe."""
        connection.send(self.event({"action": "Initialize"}, "", None), self.frame())
        while (action := connection.receive()) is not None:
            try:
                error, result = self.answer(action)
            except (KeyError, TypeError, ValueError):
                error, result = traceback.format_exc(limit=-1), None
            drawn = action.get("renderImage", True)
            connection.send(self.event(action, error, result), self.frame() if drawn else None)


def main(player: type[HousePlayer] = HousePlayer) -> None:
    """Serve houses with the arguments that a Unity player gets."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-screen-width", type=int, default=300)
    parser.add_argument("-screen-quality", type=int, default=_SMOOTH)
    arguments, _ = parser.parse_known_args()
    player(arguments.screen_width, arguments.screen_quality >= _SMOOTH).serve(FifoConnection())


if __name__ == "__main__":
    main()
