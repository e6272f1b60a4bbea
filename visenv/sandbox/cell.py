"""The client's side of one cell: hand over the program, watch it, kill it at a limit."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

from visenv.sandbox.fork_server import CellLostError
from visenv.sandbox.guest import wire
from visenv.sandbox.handoff import seal_writing
from visenv.sandbox.limits import SandboxLimits

_SECONDS_TO_SET_UP = 60.0
_SECONDS_TO_DIE = 60.0
_MOST_TO_POLL = (1 << 31) - 1  # milliseconds, an int of C
_CHUNK = 1 << 16

Cause = Literal["done", "ended", "wall", "output"]


class ExecutionEnd(NamedTuple):
    """Describes how an execution ended.

    Attributes:
        cause: ``"done"``: with its results sealed. ``"ended"``: by itself, or killed by the kernel.
            ``"wall"``, ``"output"``: killed by us, at that limit.
        end: The end that the kernel reported; None when it was done, and was not waited for.
        output: What it wrote, at most the limit.
        seconds: Of wall-clock time from its first line to its end.
    """

    cause: Cause
    end: wire.CellEnd | None
    output: bytes
    seconds: float


class Cell:
    """A cell that waits for its program. A context manager: it is killed at the latest on leaving.

    Args:
        descriptors: Of its request socket, its life socket and its output pipe; owned from now on.
    """

    def __init__(self, descriptors: Sequence[int]) -> None:
        request, life, self._output = descriptors
        self._request = socket.socket(fileno=request)
        self._life = socket.socket(fileno=life)
        self._when: float | None = None

    def __enter__(self) -> Cell:
        return self

    def __exit__(self, *_: object) -> None:
        self._request.close()
        self._life.close()
        os.close(self._output)

    def start(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Hand over the program.

        Raises:
            CellLostError: If the cell is gone.
        """
        try:
            wire.send(self._request, message, descriptors)
        except OSError as error:
            raise CellLostError(f"a process was lost before it began: {error}") from error

    def watch(self, limits: SandboxLimits, memories: Sequence[int]) -> ExecutionEnd:
        """Read what it writes until it is done or has ended; end it at a limit.

        A program is done when its output is at its end and its results can be sealed. How long the
        kernel takes to tear the process down is then waited for by no one.

        Raises:
            CellLostError: If the server died, or the cell could not lock itself in.
        """
        output = bytearray()
        cause = self._follow(output, limits, memories)
        until = time.monotonic()
        if cause in ("wall", "output"):
            self._life.shutdown(socket.SHUT_WR)  # the server kills what we let go of
        end = None if cause == "done" else self._end()
        if cause == "ended":
            self._drain(output, limits.stdout_bytes)
        seconds = until - self._began()
        return ExecutionEnd(cause, end, bytes(output[: limits.stdout_bytes]), seconds)

    def _follow(self, output: bytearray, limits: SandboxLimits, memories: Sequence[int]) -> Cause:
        """Read until it is over; returns why."""
        poll = select.poll()
        poll.register(self._life, select.POLLIN)
        poll.register(self._output, select.POLLIN)
        deadline = time.monotonic() + limits.wall_seconds
        while True:
            left = deadline - time.monotonic()
            milliseconds = min(max(0.0, 1000 * left), _MOST_TO_POLL)
            ready = [descriptor for descriptor, _ in poll.poll(milliseconds)]
            if left <= 0:
                deadline = self._began() + limits.wall_seconds
                if deadline <= time.monotonic():
                    return "wall"
            if self._output in ready:
                chunk = os.read(self._output, _CHUNK)
                output += chunk
                if len(output) > limits.stdout_bytes:
                    return "output"
                if not chunk:
                    if _complete(memories):
                        return "done"
                    poll.unregister(self._output)  # it closed its end before it was done
            elif self._life.fileno() in ready:
                return "ended"

    def _began(self) -> float:
        """Return when the first line of the program ran.

        It is asked for when it matters: to be woken by it would cost the program time.
        """
        if self._when is None:
            self._request.settimeout(_SECONDS_TO_SET_UP)
            try:
                self._when = wire.began(wire.receive(self._request)[0])
            except (OSError, ValueError) as error:
                raise CellLostError(f"a process was lost before it began: {error}") from error
        return self._when

    def _drain(self, output: bytearray, most: int) -> None:
        """Return the rest of the pipe of a process that has ended."""
        while len(output) <= most and (chunk := os.read(self._output, _CHUNK)):
            output += chunk

    def _end(self) -> wire.CellEnd:
        self._life.settimeout(_SECONDS_TO_DIE)
        try:
            message, _ = wire.receive(self._life)
        except OSError as error:
            raise CellLostError(f"a process could not be ended: {error}") from error
        if not message:
            raise CellLostError("the server died while a program ran")
        return wire.CellEnd.unpack(message)


def _complete(memories: Sequence[int]) -> bool:
    """Return whether there is a report, and the results cannot change any more."""
    return any(os.pread(memories[0], 4, 0)) and seal_writing(memories)
