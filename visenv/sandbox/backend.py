"""Defines backends of the sandbox: a program, its limits, and its execution."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol

from visenv.errors import ConfigurationError
from visenv.sandbox.handoff import SharedImage
from visenv.types import Image

INPUT_IMAGE = "path_to_input_image.jpg"
"""Path of a program's input image (Visual-ARFT, arXiv 2505.14246, figure 6)."""

OUTPUT_IMAGE = "path_to_output_image.jpg"
"""Path of its output image."""

_MOST_IMAGES = 16

_LONGEST_NAME = 100

Status = Literal["ok", "error", "memory", "wall", "cpu", "output", "refused", "crashed"]
"""``ok``: the program ended normally. ``error``: it raised an exception. ``memory``: it raised
MemoryError, or was killed because of its memory. ``wall``, ``cpu``, ``output``: it was killed at
that limit. ``refused``: its text or an image is larger than permitted, so that it was not run.
``crashed``: its process ended in any other way."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Sets the limits of one execution.

    The kernel refuses operations beyond them or ends the program.

    Attributes:
        wall_seconds: Wall-clock time from the program's first line; then all its processes are
            killed.
        cpu_seconds: CPU time of all its threads together, whole seconds.
        memory_bytes: Address space besides that of the libraries and the passed images.
        disk_bytes: Size of all files it writes, with its image file.
        files: Number of files and directories it makes.
        threads: Threads besides the first. No threads can be started if namespaces are not
            available.
        descriptors: Open files, pipes and similar.
        code_bytes: Size of the program's text in UTF-8.
        stdout_bytes: Size of standard output and error together, in UTF-8.
        image_pixels: Pixels of the output image, and of each input image.
        file_bytes: Size of the file of the output image.

    Raises:
        ConfigurationError: If a limit is not a positive number.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 10
    memory_bytes: int = 2 << 30
    disk_bytes: int = 64 << 20
    files: int = 256
    threads: int = 16
    descriptors: int = 64
    code_bytes: int = 1 << 20
    stdout_bytes: int = 1 << 20
    image_pixels: int = 7680 * 4320
    file_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            whole = name != "wall_seconds"
            if not 0 < value < 1 << 62 or (whole and not isinstance(value, int)):
                kind = "a whole number" if whole else "a number"
                raise ConfigurationError(f"{name} must be {kind} above 0, got {value!r}.")


@dataclass(frozen=True, slots=True)
class Program:
    """Holds a program, its inputs and its limits.

    Attributes:
        code: Python code.
        images: Images by file name, in the working directory, or by variable name. A variable
            contains the pixels, uint8 ``[height, width, 3]`` RGB; writing to it changes the
            program's own copy. Bytes are written to a file without changes, and need a file name.
        output: File name of the output image.

    Raises:
        ConfigurationError: If a name is neither a file name nor a variable name, or there are more
            than 16 images.
    """

    code: str
    images: Mapping[str, Image | SharedImage | bytes] = field(default_factory=dict)
    output: str = OUTPUT_IMAGE
    limits: SandboxLimits = field(default_factory=SandboxLimits)

    def __post_init__(self) -> None:
        if len(self.images) > _MOST_IMAGES:
            raise ConfigurationError(
                f"At most {_MOST_IMAGES} images can be passed, got {len(self.images)}."
            )
        for name, image in self.images.items():
            if not _is_file(name) and (not is_variable(name) or isinstance(image, bytes)):
                raise ConfigurationError(
                    f"An image needs a file name with an extension or the name of a variable, "
                    f"bytes need a file name; got {name!r}."
                )
        if not _is_file(self.output) or self.output in self.images:
            raise ConfigurationError(
                f"The output needs a file name with an extension, not that of an input; "
                f"got {self.output!r}."
            )

    def refusal(self) -> str:
        """Return the reason why the program must not be run, for its author.

        ``""`` if it may run.
        """
        limits = self.limits
        size = len(self.code.encode("utf-8", "surrogatepass"))
        if size > limits.code_bytes:
            return f"The code has {size:,} bytes; at most {limits.code_bytes:,} are run."
        for name, image in self.images.items():
            if isinstance(image, bytes):
                continue
            width, height = image.size
            if width * height > limits.image_pixels:
                most = f"at most {limits.image_pixels:,} pixels are passed"
                return f"{name} is {width}x{height} = {width * height:,} pixels; {most}."
        return ""


def is_variable(name: str) -> bool:
    """Return whether an image of that name becomes a variable; others become files."""
    return name.isidentifier() and not keyword.iskeyword(name) and len(name) <= _LONGEST_NAME


def _is_file(name: str) -> bool:
    plain = len(name) <= _LONGEST_NAME and name.isascii() and name.isprintable()
    return plain and "/" not in name and "." in name.strip(".")


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


class SandboxBackend(Protocol):
    """Runs untrusted programs.

    It is used by many threads at once, and pickled with environments.
    """

    def start(self) -> None:
        """Prepare the backend, so that the first program does not wait; otherwise `run` does this.

        Raises:
            ConfigurationError: If this machine cannot run programs safely.
            ServiceError: If the service that runs the programs cannot be reached.
        """
        ...

    def run(self, program: Program) -> Execution:
        """Run a program to its end or to a limit.

        All behavior of a program results in an `Execution`.

        Raises:
            ConfigurationError: If this machine cannot run programs safely.
            ServiceError: If the service failed beyond its retries; a program never causes this.
        """
        ...

    def close(self) -> None:
        """End the service, and kill the programs that run."""
        ...
