"""Defines the result of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from visenv.types import Image

Status = Literal["ok", "error", "memory", "wall", "cpu", "output", "refused", "crashed"]
"""``ok``: the program ended normally. ``error``: it raised an exception. ``memory``: it raised
MemoryError, or was killed because of its memory. ``wall``, ``cpu``, ``output``: it was killed at
that limit. ``refused``: its text or an image is larger than permitted, so that it was not run.
``crashed``: its process ended in any other way."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Holds the result of one run of a program.

    Attributes:
        status: How the program ended.
        stdout: Standard output and error, in the order in which they were written.
        result: `repr` of the last line if it is an expression, as in a notebook.
        error: The traceback, or another reason for its end; empty if the status is ``"ok"``.
        image: The image that it wrote to the output path; None if there is no valid image.
        file: The bytes of that image's file, which can be passed to the next program. Decode them
            only in a sandbox.
        image_problem: Why the file at the output path was rejected; empty otherwise.
        seconds: Wall-clock time from the program's first line to its end.
        cpu_seconds: CPU time, with the start of its process.
        memory_bytes: Peak resident memory, with the shared pages of the libraries.
    """

    status: Status
    stdout: str = ""
    result: str = ""
    error: str = ""
    image: Image | None = None
    file: bytes | None = None
    image_problem: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0

    @property
    def text(self) -> str:
        """Return all texts: output, result, error and the problem of the image."""
        problem = f"The image was not taken: {self.image_problem}." if self.image_problem else ""
        parts = (self.stdout, self.result, self.error, problem)
        return "\n".join(part.rstrip("\n") for part in parts if part)
