"""Run Python that a model wrote, with images in and out, without trusting it.

docs/sandbox.md says what a program is kept from and by which layer; ``visenv doctor`` says which
layers this machine grants.
"""

from visenv.sandbox.backend import SandboxBackend
from visenv.sandbox.execution import Execution, Status
from visenv.sandbox.handoff import SharedImage
from visenv.sandbox.limits import Limits
from visenv.sandbox.local import LocalBackend
from visenv.sandbox.program import INPUT_IMAGE, OUTPUT_IMAGE, Program
from visenv.sandbox.queue import Waits
from visenv.sandbox.sandbox import Sandbox, shared_sandbox

__all__ = [
    "INPUT_IMAGE",
    "OUTPUT_IMAGE",
    "Execution",
    "Limits",
    "LocalBackend",
    "Program",
    "Sandbox",
    "SandboxBackend",
    "SharedImage",
    "Status",
    "Waits",
    "shared_sandbox",
]
