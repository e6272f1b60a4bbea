"""Examines the sandbox for `visenv doctor`: tests which layers exist, and whether they work."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.errors import ConfigurationError
from visenv.sandbox.backend import INPUT_IMAGE, Execution, Program, SandboxLimits
from visenv.sandbox.fork_server import ForkServer
from visenv.sandbox.local import Isolation, LocalBackend, refusal
from visenv.types import Image

Layer = tuple[str, bool, str]
"""Name, whether the layer exists, and its version or the reason why it does not."""

_LIMITS = SandboxLimits(wall_seconds=1.0, memory_bytes=256 << 20)
_WORK = """
picture = cv2.imread("path_to_input_image.jpg")
cv2.imwrite("path_to_output_image.jpg", cv2.rotate(picture, cv2.ROTATE_90_CLOCKWISE))
"""


class SandboxCheck(NamedTuple):
    """Holds a program and a check of its result.

    Attributes:
        name: The operation that the program tries, for the report.
        code: The program.
        holds: Returns whether the result is as expected.
    """

    name: str
    code: str
    holds: Callable[[Execution], bool]


def _denied(execution: Execution) -> bool:
    last = execution.error.rpartition("\n")[2]
    return last.startswith(("PermissionError", "FileNotFoundError"))


CHECKS = (
    SandboxCheck(
        "an image is rotated", _WORK, lambda e: e.image is not None and e.image.size == (8, 16)
    ),
    SandboxCheck("files of the host", "open('/etc/passwd')", _denied),
    SandboxCheck("a file is changed", "import os\nopen(os.__file__, 'a')", _denied),
    SandboxCheck("network", "import socket\nsocket.socket()", _denied),
    SandboxCheck("processes", "import os\nos.fork()", _denied),
    SandboxCheck("signals", "import os\nos.kill(os.getppid(), 9)", _denied),
    SandboxCheck("memory", "bytearray(1 << 30)", lambda e: e.status == "memory"),
    SandboxCheck("wall clock", "import time\ntime.sleep(60)", lambda e: e.status == "wall"),
)


class SandboxStatus(NamedTuple):
    """Holds the state of the sandbox on this machine.

    Attributes:
        mode: How programs are isolated; None if they are refused.
        layers: The layers that the kernel supports.
        checks: Names of the checks, and whether each one passed.
        refusal: The reason why programs are refused; empty if they are not.
    """

    mode: str | None
    layers: tuple[Layer, ...]
    checks: tuple[tuple[str, bool], ...]
    refusal: str


def examine(isolation: Isolation = "auto") -> SandboxStatus:
    """Test every layer, and run a program for each forbidden operation.

    Raises:
        ServiceError: If the server process cannot be started.
    """
    configuration = {"isolation": isolation, "unsafe": False, "only_probe": True, "packages": ()}
    server = ForkServer(configuration, 0)
    server.close()
    hello = server.hello
    if hello.mode is None:
        return SandboxStatus(None, hello.layers, (), refusal(hello, isolation))
    backend = LocalBackend(isolation=isolation)
    try:
        image = Image.from_pixels(np.zeros((8, 16, 3), np.uint8))
        checks = tuple((each.name, _held(backend, each, image)) for each in CHECKS)
    except ConfigurationError as error:
        return SandboxStatus(None, hello.layers, (), str(error))
    finally:
        backend.close()
    return SandboxStatus(hello.mode, hello.layers, checks, "")


def _held(backend: LocalBackend, check: SandboxCheck, image: Image) -> bool:
    return check.holds(backend.run(Program(check.code, {INPUT_IMAGE: image}, limits=_LIMITS)))
