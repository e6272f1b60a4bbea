"""Runs a simulator in a child process (`visenv.child_process.program`), and answers its calls.

Written for Python 3.9 and the packages of a simulator, like the simulator itself.
"""

from __future__ import annotations

import importlib
from typing import Any


class SimulatorTarget:
    """Creates the simulator that the options name; the host calls its methods."""

    def start(self, options: dict[str, Any]) -> Any:
        """Start the simulator ``options["simulator"]``, ``"module:Class"``; return its facts."""
        module, _, name = options["simulator"].partition(":")
        self._simulator = getattr(importlib.import_module(module), name)()
        return self._simulator.start(options["options"])

    def answer(self, calls: list[Any], arrays: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Execute the calls of a request in order; see the function `answer`."""
        return answer(self._simulator, calls, arrays)

    def close(self) -> None:
        """Close the simulator."""
        self._simulator.close()


def answer(
    simulator: Any,
    calls: list[Any],
    arrays: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """Execute the calls of a request in order, and return their results and arrays."""
    import numpy as np

    results: list[Any] = []
    out: dict[str, Any] = {}
    for name, request in calls:
        if name == "frames":
            frames = simulator.frames(request)
            out.update({f"frame {key}": frame for key, frame in frames.items()})
            results.append(None)
        elif name == "snapshot":
            out["snapshot"] = np.frombuffer(simulator.snapshot(), np.uint8)
            results.append(None)
        elif name == "restore":
            results.append(simulator.restore(arrays["snapshot"].tobytes()))
        else:
            results.append(getattr(simulator, name)(request))
    return results, out
