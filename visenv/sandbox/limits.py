"""Defines what one execution may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from visenv.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Sets what one execution may use; the kernel refuses what goes beyond, or ends the program.

    Attributes:
        wall_seconds: From the program's first line; then everything it started is killed.
        cpu_seconds: CPU time of all its threads together, whole seconds.
        memory_bytes: Address space beyond what the libraries and the passed images take.
        disk_bytes: Of all files it writes; its image file too.
        files: Number of files and directories it makes.
        threads: Threads besides the first. There are none where namespaces are refused.
        descriptors: Open files, pipes and the like.
        code_bytes: Of the program's text, UTF-8.
        stdout_bytes: Of standard output and error together, UTF-8.
        image_pixels: Of the image that is taken back, and of each that is passed.
        file_bytes: Of the image file that is taken back.

    Raises:
        ConfigurationError: If one is not a positive number.
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
