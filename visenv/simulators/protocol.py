"""Defines a simulator: a class with seven methods that exchange JSON, bytes and frames.

The class may run in this process, or in a child whose interpreter is Python 3.9 or newer with NumPy
and the packages of the simulator, but without visenv's own dependencies. Its module therefore
imports only the standard library, NumPy, its own packages, modules of its own folder, and
`visenv.simulators.protocol` and `visenv.simulators.opengl`, and it is written for Python 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Frame = NDArray[np.uint8]

Facts = dict[str, Any]
"""Values that JSON can represent."""


class SetupError(RuntimeError):
    """Raised by `Simulator.start` if something must be installed first; the message names it."""


class Simulator(Protocol):
    """Runs one simulated world. The class is created without arguments, and used by one thread."""

    def start(self, options: Mapping[str, Any]) -> Facts:
        """Load the packages and return facts, for example the versions of the packages.

        Raises:
            ImportError: If a package is missing.
            SetupError: If something else must be installed.
        """
        ...

    def reset(self, task: Mapping[str, Any]) -> Facts:
        """Start an episode.

        Equal tasks give bit-identical states, regardless of earlier episodes.
        """
        ...

    def act(self, request: Mapping[str, Any]) -> Facts:
        """Execute an action and return its result."""
        ...

    def frames(self, request: Mapping[str, Any]) -> Mapping[str, Frame]:
        """Return images of the current state by name, uint8 ``[height, width, 3]``."""
        ...

    def snapshot(self) -> bytes:
        """Return the state of the episode."""
        ...

    def restore(self, snapshot: bytes) -> Facts:
        """Restore a snapshot of the same task, with which `reset` was called before."""
        ...

    def close(self) -> None:
        """Release all resources of the simulator."""
        ...
