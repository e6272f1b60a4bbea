"""Means and shares with their 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Z = 1.959963984540054
"""The normal distribution's 97.5 % point."""


class Mean(NamedTuple):
    """A mean and its 95 % interval; the bounds are NaN where one value tells nothing."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def brief(self) -> str:
        """The mean with half the width of its interval, for narrow columns."""
        known = "" if math.isnan(self.low) else f" ± {self.half_width:.3f}"
        return f"{self.value:.3f}{known}"

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean(values: Sequence[float]) -> Mean:
    """The mean with ``± 1.96 s / sqrt(n)``, s being the sample standard deviation."""
    if len(values) < 2:
        return Mean(float(values[0]) if values else math.nan, math.nan, math.nan)
    middle = float(np.mean(values))
    half = Z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Mean(middle, middle - half, middle + half)


def proportion(hits: int, count: int) -> Mean:
    """The share of hits with Wilson's interval (Wilson 1927); all NaN for a count of 0.

    With p the share and n the count, its bounds are
    ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)``: it never leaves 0 to 1, and does
    not vanish where the share is 0 or 1.
    """
    if not count:
        return Mean(math.nan, math.nan, math.nan)
    share, part = hits / count, Z * Z / count
    middle = (share + part / 2) / (1 + part)
    half = Z * math.sqrt(share * (1 - share) / count + part / (4 * count)) / (1 + part)
    return Mean(share, max(0.0, middle - half), min(1.0, middle + half))


def mean_of(parts: Sequence[Mean]) -> Mean:
    """The mean of independent means, each counting the same.

    Its bounds are as far away as theirs together: ``sqrt(sum of squared distances) / n``, below and
    above by themselves (Zou and Donner 2008), so that shares stay in 0 to 1.
    """
    middle = sum(part.value for part in parts) / len(parts)
    below = math.hypot(*(part.value - part.low for part in parts)) / len(parts)
    above = math.hypot(*(part.high - part.value for part in parts)) / len(parts)
    return Mean(middle, middle - below, middle + above)
