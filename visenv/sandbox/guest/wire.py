"""Defines the messages between client, server and cell, and the names that both sides use.

There are three sockets of kind SEQPACKET, so that each message arrives as a whole:

- control, between client and server: the client requests a cell (`SPAWN`); the server answers with
  `CELL` and three descriptors: the cell's *request* socket, its *life* socket and the end of its
  output pipe.
- request, between client and cell: the client sends the program with its images, once. The cell
  answers when the program begins (`begun`), and closes its end before the first line of the
  program.
- life, between client and server: the client closes it to kill the cell; the server sends how the
  cell ended. No cell has this socket, so that programs cannot forge the message.

The result and the image of a program are in three memory files, which the client made: `REPORT`,
`PIXELS`, `FILE`. When the output pipe has ended and a report exists, the client seals them; it does
not wait for the end of the process.
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
"""Start of a message that the server could not start a cell or the cell could not be set up; the
reason follows."""

REPORT, PIXELS, FILE = 3, 4, 5
"""Descriptors of a program besides 0, 1 and 2."""

REPORT_BYTES = 1 << 18
RESULT_BYTES, ERROR_BYTES, PROBLEM_BYTES = 1 << 16, 1 << 16, 1 << 10
"""Maximum number of bytes of a report, and of each text in it, in UTF-8."""

_MESSAGE_BYTES = 1 << 16
_DESCRIPTORS = 64
_BEGUN = struct.Struct("=d")
_END = struct.Struct("=idq")
_REPORT = struct.Struct("=3I5Q")


class CellEnd(NamedTuple):
    """Describes how a cell ended.

    Attributes:
        status: The status from `os.wait4`.
        cpu: CPU time in seconds, with the start and the end of the process.
        memory: Peak resident memory in kilobytes.
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
    """Holds the report of a program's process. The program could have written any part of it.

    Attributes:
        result: `repr` of its last expression.
        error: The traceback, empty if the program ended normally.
        problem: Why a file at the output path is not used as the image.
        height: Height of the image; 0 without an image.
        width: Width of the image.
        file: Size of the image file in bytes.
        cpu: CPU time in microseconds.
        memory: Peak resident memory in kilobytes.
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
        """Return the content of the memory file, with texts truncated to their limits."""
        texts = (
            self.result[:RESULT_BYTES],
            self.error[-ERROR_BYTES:],
            self.problem[:PROBLEM_BYTES],
        )
        sizes = [len(text) + 1 for text in texts]  # the file contains 0 before it is written
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
    """Return the next message and its descriptors, which the caller closes.

    Empty after the last one.
    """
    room = socket.CMSG_LEN(_DESCRIPTORS * array.array("i").itemsize)
    message, ancillary, _, _ = source.recvmsg(_MESSAGE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return message, list(descriptors)


def begun() -> bytes:
    """Return the message "program started" with the time of `time.monotonic`.

    Host and guest read the same clock.
    """
    return _BEGUN.pack(time.monotonic())


def began(message: bytes) -> float:
    """Return the start time, in seconds of `time.monotonic`.

    Raises:
        ValueError: If the message is another one; the error contains it.
    """
    if len(message) != _BEGUN.size:
        why = message.removeprefix(FAILED).decode("utf-8", "replace")
        raise ValueError(why or "it did not answer")
    (when,) = _BEGUN.unpack(message)
    return float(when)


def encode(value: dict[str, Any]) -> bytes:
    """Return a message with named values; lone surrogates are escaped."""
    return json.dumps(value).encode("ascii")


def decode(message: bytes) -> dict[str, Any]:
    """Return the values of a message."""
    value: dict[str, Any] = json.loads(message)
    return value
