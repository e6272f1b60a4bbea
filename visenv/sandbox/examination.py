"""Examines the sandbox for `visenv doctor`: the layers there are, and whether they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.errors import ConfigurationError
from visenv.sandbox.execution import Execution
from visenv.sandbox.fork_server import ForkServer
from visenv.sandbox.limits import Limits
from visenv.sandbox.local import Isolation, LocalBackend, refusal
from visenv.sandbox.program import INPUT_IMAGE, Program
from visenv.types import Image

Layer = tuple[str, bool, str]
"""Its name, whether it is there, and its version or why not."""

_LIMITS = Limits(wall_seconds=1.0, memory_bytes=256 << 20)
_WORK = """
picture = cv2.imread("path_to_input_image.jpg")
cv2.imwrite("path_to_output_image.jpg", cv2.rotate(picture, cv2.ROTATE_90_CLOCKWISE))
"""


class Check(NamedTuple):
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
    Check("an image is rotated", _WORK, lambda e: e.image is not None and e.image.size == (8, 16)),
    Check("files of the host", "open('/etc/passwd')", _denied),
    Check("a file is changed", "import os\nopen(os.__file__, 'a')", _denied),
    Check("network", "import socket\nsocket.socket()", _denied),
    Check("processes", "import os\nos.fork()", _denied),
    Check("signals", "import os\nos.kill(os.getppid(), 9)", _denied),
    Check("memory", "bytearray(1 << 30)", lambda e: e.status == "memory"),
    Check("wall clock", "import time\ntime.sleep(60)", lambda e: e.status == "wall"),
)


class Examination(NamedTuple):
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


def examine(isolation: Isolation = "auto") -> Examination:
    """Try every layer, and a program against each thing it must not do.

    Raises:
        ServiceError: If the server process cannot be started.
    """
    configuration = {"isolation": isolation, "unsafe": False, "only_probe": True, "packages": ()}
    server = ForkServer(configuration, 0)
    server.close()
    hello = server.hello
    if hello.mode is None:
        return Examination(None, hello.layers, (), refusal(hello, isolation))
    backend = LocalBackend(isolation=isolation)
    try:
        image = Image.from_pixels(np.zeros((8, 16, 3), np.uint8))
        checks = tuple((each.name, _held(backend, each, image)) for each in CHECKS)
    except ConfigurationError as error:
        return Examination(None, hello.layers, (), str(error))
    finally:
        backend.close()
    return Examination(hello.mode, hello.layers, checks, "")


def _held(backend: LocalBackend, check: Check, image: Image) -> bool:
    return check.holds(backend.run(Program(check.code, {INPUT_IMAGE: image}, limits=_LIMITS)))
