"""Stops a run before infinite or suddenly large gradients damage its weights."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

_WATCHED = 50
"""The number of gradient norms of the median."""
_FIRST = 10
"""The number of norms that must be known before norms are compared with the median."""


class DivergenceCheck:
    """Checks loss and gradient before each optimizer step, equally on every process.

    Args:
        max_grad_norm_ratio: The maximum ratio of a norm to the median norm; None sets no limit.
    """

    def __init__(self, max_grad_norm_ratio: float | None) -> None:
        self._max_ratio = max_grad_norm_ratio
        self._norms: deque[float] = deque(maxlen=_WATCHED)

    @property
    def norms(self) -> list[float]:
        """Return the latest norms, for a checkpoint."""
        return list(self._norms)

    def remember(self, norms: Sequence[float]) -> None:
        """Restore the norms of a checkpoint."""
        self._norms = deque(norms, maxlen=_WATCHED)

    def problem(self, loss: float, norm: float) -> str | None:
        """Return the reason for refusing the step, or None."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if not math.isfinite(norm):
            return f"the gradient is {norm}"
        if self._max_ratio is None or len(self._norms) < _FIRST:
            return None
        usual = median(self._norms)
        if norm <= self._max_ratio * usual:
            return None
        return f"the gradient norm is {norm:.4g}, {norm / usual:.3g} times its median"

    def taken(self, norm: float) -> None:
        """Record the norm of a step that was taken."""
        self._norms.append(norm)
