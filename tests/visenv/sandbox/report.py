"""Prints the results of sandboxes in this process as a line of JSON: report.py ISOLATION...

An isolation may be ``unsafe``.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from visenv.errors import VisenvError
from visenv.sandbox import INPUT_IMAGE, LocalBackend, Sandbox
from visenv.types import Image

PROGRAM = """
import ctypes, errno, os, socket, urllib.request

libc = ctypes.CDLL(None, use_errno=True)

def outcome(act, *arguments):
    try:
        act(*arguments)
    except OSError:
        return "refused"
    return "done"

def unshare():
    if libc.unshare(0x10000000):
        raise OSError

picture = cv2.imread("path_to_input_image.jpg")
cv2.imwrite("path_to_output_image.jpg", cv2.rotate(picture, cv2.ROTATE_180))
import numpy.lib.recfunctions, xml.dom.minidom  # from the libraries, not loaded before
{
    "user": (os.getuid(), os.geteuid()),
    "password file": outcome(open, "/etc/passwd"),
    "environment": outcome(open, "/proc/self/environ"),
    "library": outcome(open, os.__file__, "a"),
    "socket": outcome(socket.socket),
    "fork": outcome(os.fork),
    "signal": outcome(os.kill, -1, 0),
    "namespace": outcome(unshare),
}
"""


def report(isolation: str) -> dict[str, object]:
    """Rotate an image and attack the host in a sandbox, and return the results."""
    image = Image.from_pixels(np.zeros((2, 3, 3), np.uint8))
    unsafe = isolation == "unsafe"
    backend = LocalBackend(isolation="auto" if unsafe else isolation, unsafe=unsafe)  # type: ignore[arg-type]
    with Sandbox(backend) as sandbox:
        try:
            execution = sandbox.run(PROGRAM, {INPUT_IMAGE: image})
        except VisenvError as error:
            return {"refused": str(error), "kind": type(error).__name__}
        return {
            "mode": backend.hello().mode,
            "result": execution.result,
            "error": execution.error,
            "size": execution.image and execution.image.size,
        }


print(json.dumps([report(isolation) for isolation in sys.argv[1:]]))
