"""Implements a player of AI2-THOR that serves House over ai2thor's FIFO, without Unity.

A message is a sequence of fields. Each field has a header of one byte (the type of the field) and
four bytes (its length, big-endian), and its content; an empty field of type 255 ends the message.
The player sends metadata as MessagePack and a frame with its rows from the bottom up; it receives
actions as JSON.

ai2thor starts it (``python -m … player``) with the arguments of a Unity player. It uses ai2thor's
FIFO protocol, and builds a house for the action ``CreateHouse``, as for ProcTHOR's houses.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import traceback
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...world.render import HouseRenderer
from ...world.tasks import TaskOptions, make_task
from .house_scene import ThorHouse

_HEADER = struct.Struct("!BI")

_METADATA, _ACTION, _FRAME, _END = 1, 2, 4, 255

PROCEDURAL = "Procedural"
"""The scene in which ai2thor builds houses."""

_SMOOTH = 7
"""The index of ai2thor's quality ``"Ultra"``, which smooths edges."""


class FifoConnection:
    """Connects to ai2thor with two pipes, whose paths are in `os.environ`."""

    def __init__(self) -> None:
        self._out = _open("AI2THOR_FIFO_SERVER_PIPE_PATH", os.O_WRONLY)
        self._in: BinaryIO | None = None

    def send(self, metadata: Mapping[str, Any], frame: NDArray[np.uint8] | None) -> None:
        """Send an event.

        Args:
            metadata: A JSON-like value.
            frame: uint8 ``[height, width, 3]``, or None for an event without a frame.
        """
        self._field(_METADATA, packed(metadata))
        if frame is not None:
            self._field(_FRAME, np.ascontiguousarray(frame[::-1]).tobytes())
        self._field(_END, b"")
        self._out.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return the next action, None if ai2thor has closed the pipe."""
        if self._in is None:  # ai2thor opens this pipe after it has read the first event
            self._in = _open("AI2THOR_FIFO_CLIENT_PIPE_PATH", os.O_RDONLY)
        action: dict[str, Any] | None = None
        while True:
            header = self._in.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return None
            kind, size = _HEADER.unpack(header)
            if kind == _END:
                return action
            content = self._in.read(size)
            if kind == _ACTION:
                action = json.loads(content)

    def _field(self, kind: int, content: bytes) -> None:
        self._out.write(_HEADER.pack(kind, len(content)) + content)


def _open(variable: str, flags: int) -> BinaryIO:
    """Open the pipe of an environment variable; waits until ai2thor opens it, too."""
    return os.fdopen(os.open(os.environ[variable], flags), "wb" if flags else "rb")


def packed(value: Any) -> bytes:
    """Return a JSON-like value as MessagePack.

    Raises:
        TypeError: If JSON cannot represent the value.
    """
    out = bytearray()
    _pack(value, out)
    return bytes(out)


def _pack(value: Any, out: bytearray) -> None:
    if value is None:
        out += b"\xc0"
    elif isinstance(value, bool):
        out += b"\xc3" if value else b"\xc2"
    elif isinstance(value, int):
        out += struct.pack("!Bq", 0xD3, value)
    elif isinstance(value, float):
        out += struct.pack("!Bd", 0xCB, value)
    elif isinstance(value, str):
        content = value.encode()
        out += struct.pack("!BI", 0xDB, len(content)) + content
    elif isinstance(value, Mapping):
        out += struct.pack("!BI", 0xDF, len(value))
        for key, each in value.items():
            _pack(key, out)
            _pack(each, out)
    elif isinstance(value, list | tuple):
        out += struct.pack("!BI", 0xDD, len(value))
        for each in value:
            _pack(each, out)
    else:
        raise TypeError(f"{type(value).__name__} cannot be packed.")


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
