"""Run Python that a model wrote, with images in and out, without trusting it.

docs/sandbox.md says what a program is kept from and by which layer; ``visenv doctor`` says which
layers this machine grants.
"""

from visenv.sandbox.backend import SandboxBackend
from visenv.sandbox.execution import Execution, Status
from visenv.sandbox.handoff import SharedImage
from visenv.sandbox.limits import SandboxLimits
from visenv.sandbox.local import LocalBackend
from visenv.sandbox.program import INPUT_IMAGE, OUTPUT_IMAGE, Program
from visenv.sandbox.queue import QueueWaits
from visenv.sandbox.sandbox import Sandbox, shared_sandbox

__all__ = [
    "INPUT_IMAGE",
    "OUTPUT_IMAGE",
    "Execution",
    "LocalBackend",
    "Program",
    "QueueWaits",
    "Sandbox",
    "SandboxBackend",
    "SandboxLimits",
    "SharedImage",
    "Status",
    "shared_sandbox",
]
