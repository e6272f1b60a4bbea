"""Runs untrusted Python that a model wrote, with images as input and output.

docs/sandbox.md describes the protections against such programs and the layer of each one. ``visenv
doctor`` lists the layers that this machine supports.
"""

from visenv.sandbox.backend import (
    INPUT_IMAGE,
    OUTPUT_IMAGE,
    Execution,
    Program,
    SandboxBackend,
    SandboxLimits,
    Status,
)
from visenv.sandbox.handoff import SharedImage
from visenv.sandbox.local import LocalBackend
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
