"""The messages between client, server and cell, and the names both sides use.

Three sockets, all of kind SEQPACKET, so that a message arrives whole:

- control, client and server: the client asks for a cell (`SPAWN`); the server answers with `CELL`
  and three descriptors: the cell's *request* and *life* sockets and the end of its output pipe.
- request, client and cell: the program with its images, once; then when it begins (`begun`), and
  the cell closes its end before a line of the program runs.
- life, client and server: the client closes it to have the cell killed; the server sends how the
  cell ended. No cell holds it, so no program can forge an end.

What a program leaves behind (its result, its image) is in three memory files that the client made:
`REPORT`, `PIXELS`, `FILE`. When the output pipe is at its end and a report is there, the client
seals them; from then on it does not matter how long the process takes to die.
"""

from __future__ import annotations

import array
import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

SPAWN = b"spawn"
CELL = b"cell"
FAILED = b"failed: "
"""The server could not start a cell, or the cell could not be set up: followed by why."""

REPORT, PIXELS, FILE = 3, 4, 5
"""The descriptors a program has besides 0, 1 and 2."""

REPORT_BYTES = 1 << 18
RESULT_BYTES, ERROR_BYTES, PROBLEM_BYTES = 1 << 16, 1 << 16, 1 << 10
"""Most bytes of a report, and of each text in it, UTF-8."""

_MESSAGE_BYTES = 1 << 16
_DESCRIPTORS = 64
_BEGUN = struct.Struct("=d")
_END = struct.Struct("=idq")
_REPORT = struct.Struct("=3I5Q")


class CellEnd(NamedTuple):
    """Says how a cell ended.

    Attributes:
        status: As `os.wait4` gives it.
        cpu: CPU seconds it took, its making and end with them.
        memory: Most resident kilobytes.
    """

    status: int
    cpu: float
    memory: int

    def pack(self) -> bytes:
        """Return the end as a message."""
        return _END.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> CellEnd:
        """Read an end from a message."""
        return cls(*_END.unpack(message))


class ProgramReport(NamedTuple):
    """Holds what a program's process reports. The program could have written any of it.

    Attributes:
        result: `repr` of its last expression.
        error: The traceback, empty if it came to its end.
        problem: Why there is no image though there is a file.
        height: Of the image; 0 without one.
        width: Of the image.
        file: Bytes of the image file.
        cpu: Microseconds of CPU time it took.
        memory: Most resident kilobytes.
    """

    result: bytes = b""
    error: bytes = b""
    problem: bytes = b""
    height: int = 0
    width: int = 0
    file: int = 0
    cpu: int = 0
    memory: int = 0

    def pack(self) -> bytes:
        """Return the content of the memory file, with texts cut to their limits."""
        texts = (
            self.result[:RESULT_BYTES],
            self.error[-ERROR_BYTES:],
            self.problem[:PROBLEM_BYTES],
        )
        sizes = [len(text) + 1 for text in texts]  # 0 is what the file holds before it is written
        return _REPORT.pack(*sizes, *self[3:]) + b"".join(texts)

    @classmethod
    def unpack(cls, content: bytes) -> ProgramReport | None:
        """Read the content of the memory file; return None if it is invalid."""
        numbers = _REPORT.unpack_from(content)
        sizes = numbers[:3]
        limits = (RESULT_BYTES, ERROR_BYTES, PROBLEM_BYTES)
        if not all(0 < size <= limit + 1 for size, limit in zip(sizes, limits, strict=True)):
            return None
        texts, start = [], _REPORT.size
        for size in sizes:
            texts.append(content[start : start + size - 1])
            start += size - 1
        return cls(texts[0], texts[1], texts[2], *numbers[3:])


def send(to: socket.socket, message: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send a message with copies of descriptors."""
    rights = array.array("i", descriptors)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
    to.sendmsg([message], ancillary)


def receive(source: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next message and its descriptors, to be closed; empty after the last."""
    room = socket.CMSG_LEN(_DESCRIPTORS * array.array("i").itemsize)
    message, ancillary, _, _ = source.recvmsg(_MESSAGE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return message, list(descriptors)


def begun() -> bytes:
    """Return the message that a program starts now; all processes share the clock."""
    return _BEGUN.pack(time.monotonic())


def began(message: bytes) -> float:
    """Return the start time, in seconds of `time.monotonic`.

    Raises:
        ValueError: With what the message says instead.
    """
    if len(message) != _BEGUN.size:
        why = message.removeprefix(FAILED).decode("utf-8", "replace")
        raise ValueError(why or "it did not answer")
    (when,) = _BEGUN.unpack(message)
    return float(when)


def encode(value: dict[str, Any]) -> bytes:
    """Return a message of named values; lone surrogates are kept as escapes."""
    return json.dumps(value).encode("ascii")


def decode(message: bytes) -> dict[str, Any]:
    """Return the values of a message."""
    value: dict[str, Any] = json.loads(message)
    return value
