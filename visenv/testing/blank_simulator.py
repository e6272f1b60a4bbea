"""Defines a simulator that does nothing, to measure the cost of a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class BlankSimulator:
    """Counts actions; its frames are two gray images."""

    def start(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return an empty dict."""
        self._count = 0
        return {}

    def reset(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Set the count to 0."""
        self._count = 0
        return {"count": 0}

    def act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Increase the count."""
        self._count += 1
        return {"count": self._count}

    def frames(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return two frames of ``request["side"]`` pixels."""
        side = int(request["side"])
        return {name: np.full((side, side, 3), 90, np.uint8) for name in ("left", "right")}

    def snapshot(self) -> bytes:
        """Return the count."""
        return self._count.to_bytes(8, "little")

    def restore(self, snapshot: bytes) -> dict[str, Any]:
        """Set the count to that of the snapshot."""
        self._count = int.from_bytes(snapshot, "little")
        return {"count": self._count}

    def close(self) -> None:
        """Do nothing."""
