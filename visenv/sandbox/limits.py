"""Defines the limits of one execution."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from visenv.errors import ConfigurationError


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
