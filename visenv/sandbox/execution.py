"""Defines the result of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from visenv.types import Image

Status = Literal["ok", "error", "memory", "wall", "cpu", "output", "refused", "crashed"]
"""``ok``: it came to its end. ``error``: it raised. ``memory``: it raised MemoryError or was killed
for memory. ``wall``, ``cpu``, ``output``: it was killed at that limit. ``refused``: its text or an
image is larger than allowed, so it was not run. ``crashed``: its process ended in any other way."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Holds the result of one run of a program.

    Attributes:
        status: How it ended.
        stdout: Standard output and error, in the order they were written.
        result: `repr` of the last line if that is an expression, as a notebook shows it.
        error: The traceback, or what else ended it; empty when the status is ``"ok"``.
        image: The image it wrote to the output path; None if it wrote none that can be taken.
        file: The bytes of that image's file, to be passed to the next program. Nobody but a
            sandbox should decode them.
        image_problem: Why a file at the output path was not taken; empty otherwise.
        seconds: Wall-clock time from the program's first line to its end.
        cpu_seconds: CPU time, the making of its process with it.
        memory_bytes: Most resident memory, the libraries' shared pages with it.
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
        """Return all texts: output, result, error and what is wrong with the image."""
        problem = f"The image was not taken: {self.image_problem}." if self.image_problem else ""
        parts = (self.stdout, self.result, self.error, problem)
        return "\n".join(part.rstrip("\n") for part in parts if part)
