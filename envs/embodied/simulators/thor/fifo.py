"""Implements the player's side of ai2thor's FIFO protocol.

A message is a sequence of fields. Each field has a header of one byte (the type of the field) and
four bytes (its length, big-endian), and its content; an empty field of type 255 ends the message.
The player sends metadata as MessagePack and a frame with its rows from the bottom up; it receives
actions as JSON.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("!BI")
_METADATA, _ACTION, _FRAME, _END = 1, 2, 4, 255


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
