"""Moves the agent with ai2thor's actions, and parses ai2thor's reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .scene import Point, Scene

_CAMERA_HEIGHT = 0.675
"""Height in meters of the camera above ai2thor's agent position."""


class ActionResult(NamedTuple):
    """Holds the result of an action.

    Attributes:
        code: ``""`` if it succeeded, otherwise the reason: a code of
            `visenv.envs.embodied.dialects.alfred`, ``"not_found"``, ``"unreachable"`` or
            ``"refused"``.
        message: The message of ai2thor, with names instead of ids.
    """

    code: str = ""
    message: str = ""


class ActionExecutor(Protocol):
    """Executes ai2thor's actions."""

    def do(self, action: str, **arguments: Any) -> Mapping[str, Any]:
        """Execute an action and return the metadata of its event."""
        ...


class Body:
    """Represents the agent in a scene.

    Args:
        actor: Executes ai2thor's actions.
        scene: The scene.
        reachable: The positions where the agent can stand.
    """

    def __init__(self, actor: ActionExecutor, scene: Scene, reachable: Sequence[Point]) -> None:
        self.actor = actor
        self.scene = scene
        self.reachable = list(reachable)

    def teleport(self, position: Point, at: Point) -> bool:
        """Teleport to a position and face another one; return whether it succeeded."""
        turn = math.degrees(math.atan2(at[0] - position[0], at[2] - position[2])) % 360
        away = math.hypot(at[0] - position[0], at[2] - position[2])
        down = math.degrees(math.atan2(position[1] + _CAMERA_HEIGHT - at[1], away))
        return self.pose(position, turn, down)

    def pose(self, position: Point, turn: float, down: float) -> bool:
        """Teleport to a position and look in a direction, in degrees to the right and down."""
        x, y, z = position
        return not self.do(
            "TeleportFull", x=x, y=y, z=z, rotateOnTeleport=True, rotation=turn, horizon=down
        ).code

    def is_visible(self, identity: str) -> bool:
        """Return whether an object can be used from the position of the agent."""
        return bool(self.scene.by_id[identity].get("visible"))

    def do(self, action: str, **arguments: Any) -> ActionResult:
        """Execute one of ai2thor's actions and parse its result."""
        metadata = self.actor.do(action, **arguments)
        self.scene.update(metadata)
        if metadata["lastActionSuccess"]:
            return ActionResult()
        return ActionResult("refused", self._readable(str(metadata.get("errorMessage") or action)))

    def _readable(self, message: str) -> str:
        """Return a message with the names of objects instead of their ids."""
        for identity in sorted(self.scene.by_id, key=len, reverse=True):
            message = message.replace(identity, self.scene.name_of(identity))
        return message[:300]
