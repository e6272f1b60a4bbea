"""Examines the sandbox for `visenv doctor`: the layers there are, and whether they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.errors import ConfigurationError
from visenv.sandbox.execution import Execution
from visenv.sandbox.fork_server import ForkServer
from visenv.sandbox.limits import SandboxLimits
from visenv.sandbox.local import Isolation, LocalBackend, refusal
from visenv.sandbox.program import INPUT_IMAGE, Program
from visenv.types import Image

Layer = tuple[str, bool, str]
"""Its name, whether it is there, and its version or why not."""

_LIMITS = SandboxLimits(wall_seconds=1.0, memory_bytes=256 << 20)
_WORK = """
picture = cv2.imread("path_to_input_image.jpg")
cv2.imwrite("path_to_output_image.jpg", cv2.rotate(picture, cv2.ROTATE_90_CLOCKWISE))
"""


class SandboxCheck(NamedTuple):
    """A program, and what must come of it.

    Attributes:
        name: What is tried.
        code: The program.
        holds: Whether what came of it is right.
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
    """The state of the sandbox on this machine.

    Attributes:
        mode: How programs are isolated; None if they are refused.
        layers: What the kernel grants.
        checks: What was tried from inside, and whether it went as it must.
        refusal: Why programs are refused, empty if they are not.
    """

    mode: str | None
    layers: tuple[Layer, ...]
    checks: tuple[tuple[str, bool], ...]
    refusal: str


def examine(isolation: Isolation = "auto") -> SandboxStatus:
    """Try every layer, and a program against each thing it must not do.

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
