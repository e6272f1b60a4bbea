"""Defines a tool that fails as the policy requests, to test that failures stay isolated."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ServiceError
from visenv.tools.base import Arguments, Store, Tool, ToolResult

REACHED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Set by a call of kind ``"wait"`` when it begins to wait; by name of the gate."""

OPENED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Set by a test to let that call continue; by name of the gate. Works for threads of one
process."""


class FaultyArguments(Arguments):
    """Holds the arguments of `FaultyTool`."""

    kind: Literal["service", "error", "wait", "exit"] = Field(description="how to fail")
    gate: str = Field(default="", description="the gate to wait at")


class FaultyTool(Tool[FaultyArguments]):
    """Raises, waits at a gate (forever if it is never opened), or ends its process."""

    name = "trouble"
    description = "Fails."
    arguments = FaultyArguments

    @override
    def call(self, arguments: FaultyArguments, store: Store) -> ToolResult:
        """Fail or wait, as the arguments request."""
        match arguments.kind:
            case "service":
                raise ServiceError("search", "the server is down")
            case "error":
                raise RuntimeError("a bug in a tool")
            case "exit":
                os._exit(3)
            case "wait":
                REACHED[arguments.gate].set()
                OPENED[arguments.gate].wait()
                return ToolResult((f"passed {arguments.gate}",))

    @override
    def example(self) -> FaultyArguments:
        return FaultyArguments(kind="service")

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> FaultyArguments:
        """Return arguments for a failing service; other failures are never random."""
        return FaultyArguments(kind="service")
