"""Controls a cell as its client: sends a program, reads its output, kills it at a limit."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

from visenv.sandbox.backend import SandboxLimits
from visenv.sandbox.fork_server import CellLostError
from visenv.sandbox.guest import wire
from visenv.sandbox.handoff import seal_writing

_SECONDS_TO_SET_UP = 60.0
_SECONDS_TO_DIE = 60.0
_MOST_TO_POLL = (1 << 31) - 1  # milliseconds, a C int
_CHUNK = 1 << 16

Cause = Literal["done", "ended", "wall", "output"]


class ExecutionEnd(NamedTuple):
    """Describes how an execution ended.

    Attributes:
        cause: ``"done"``: the program ended and its results are sealed. ``"ended"``: the process
            ended without results, or the kernel killed it. ``"wall"``, ``"output"``: the client
            killed it at that limit.
        end: The end that the kernel reported; None if the cause is ``"done"``, which does not wait
            for the process.
        output: Output of the program, at most the limit.
        seconds: Wall-clock time from the first line of the program to its end.
    """

    cause: Cause
    end: wire.CellEnd | None
    output: bytes
    seconds: float


class Cell:
    """Represents a process that waits for its program.

    It is a context manager, which kills the process at exit.

    Args:
        descriptors: The request socket, the life socket and the output pipe; the cell closes them.
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
        """Send the program.

        Raises:
            CellLostError: If the process no longer exists.
        """
        try:
            wire.send(self._request, message, descriptors)
        except OSError as error:
            raise CellLostError(f"a process was lost before it began: {error}") from error

    def watch(self, limits: SandboxLimits, memories: Sequence[int]) -> ExecutionEnd:
        """Read the output until the program is done or the process has ended; kill it at a limit.

        A program is done if its output has ended and its results can be sealed. The client does not
        wait until the kernel has removed the process.

        Raises:
            CellLostError: If the server died, or the process could not apply its restrictions.
        """
        output = bytearray()
        cause = self._follow(output, limits, memories)
        until = time.monotonic()
        if cause in ("wall", "output"):
            self._life.shutdown(socket.SHUT_WR)  # the server then kills the cell
        end = None if cause == "done" else self._end()
        if cause == "ended":
            self._drain(output, limits.stdout_bytes)
        seconds = until - self._began()
        return ExecutionEnd(cause, end, bytes(output[: limits.stdout_bytes]), seconds)

    def _follow(self, output: bytearray, limits: SandboxLimits, memories: Sequence[int]) -> Cause:
        """Read until the program is done or stopped; return the cause."""
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
                    poll.unregister(self._output)  # the program closed its output early
            elif self._life.fileno() in ready:
                return "ended"

    def _began(self) -> float:
        """Return the start time of the first line of the program.

        This message is read only when it is needed, because waking up for it would cost the program
        time.
        """
        if self._when is None:
            self._request.settimeout(_SECONDS_TO_SET_UP)
            try:
                self._when = wire.began(wire.receive(self._request)[0])
            except (OSError, ValueError) as error:
                raise CellLostError(f"a process was lost before it began: {error}") from error
        return self._when

    def _drain(self, output: bytearray, most: int) -> None:
        """Read the remaining output of a process that has ended."""
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
    """Return whether a report exists and the results can no longer change."""
    return any(os.pread(memories[0], 4, 0)) and seal_writing(memories)
