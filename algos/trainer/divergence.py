"""Stops a run before its weights are damaged by infinities or by gradients that leap."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

_WATCHED = 50
"""Gradient norms that the median is taken over."""
_FIRST = 10
"""Norms that must be known before one is called a leap."""


class DivergenceCheck:
    """Checks loss and gradient before each optimizer step; the same on every process.

    Args:
        max_grad_norm_ratio: How many times the median norm is too much; None is no limit.
    """

    def __init__(self, max_grad_norm_ratio: float | None) -> None:
        self._max_ratio = max_grad_norm_ratio
        self._norms: deque[float] = deque(maxlen=_WATCHED)

    @property
    def norms(self) -> list[float]:
        """Return the norms that are remembered, for a checkpoint."""
        return list(self._norms)

    def remember(self, norms: Sequence[float]) -> None:
        """Go on from a checkpoint's norms."""
        self._norms = deque(norms, maxlen=_WATCHED)

    def problem(self, loss: float, norm: float) -> str | None:
        """Return why the step should be refused, or None."""
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
        """Remember the norm of a step that was taken."""
        self._norms.append(norm)
