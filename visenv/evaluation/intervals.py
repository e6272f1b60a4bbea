"""Means and shares with their 95 % intervals, over samples that may be repeated.

Repeats of one sample are not independent. Each function therefore takes the cluster of every value,
and its interval is one over clusters: it does not shrink because a sample was repeated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

Z = 1.959963984540054
"""The normal distribution's 97.5 % point."""

Clusters = Sequence[Hashable] | None
"""The cluster of each value, such as the sample of an episode; None: each value has its own."""


class Mean(NamedTuple):
    """A mean and its 95 % interval; the bounds are NaN where one value tells nothing."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Return half the width of the interval."""
        return (self.high - self.low) / 2

    @override
    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


NOTHING = Mean(math.nan, math.nan, math.nan)
"""The mean of no values."""


def mean(values: Sequence[float], clusters: Clusters = None) -> Mean:
    """Return the mean with the normal interval, the standard error being that of `_spread`.

    Without repeats the interval is ``± 1.96 s / sqrt(n)``, s being the sample standard deviation.
    """
    if not values:
        return NOTHING
    middle = float(np.mean(values))
    sums, counts = _by_cluster(values, clusters)
    if len(counts) < 2:
        return Mean(middle, math.nan, math.nan)
    half = Z * _spread(sums, counts, middle)
    return Mean(middle, middle - half, middle + half)


def share(values: Sequence[float], clusters: Clusters = None) -> Mean:
    """Return the mean of values between 0 and 1 with Wilson's interval for clusters.

    The count of Wilson's formula is the effective number of values, ``p (1 - p) / SE²`` (Korn and
    Graubard 1998), with SE from `_spread`. It is at least the effective number of clusters,
    ``(sum of sizes)² / sum of squared sizes`` (Kish 1965), and at most the number of values. With
    one value 0 or 1 for each cluster it is the number of values: Wilson's own interval.
    """
    if not values:
        return NOTHING
    middle = min(1.0, max(0.0, float(np.mean(values))))
    sums, counts = _by_cluster(values, clusters)
    effective = fewest = float(counts.sum() ** 2 / (counts**2).sum())
    variance = middle * (1 - middle)
    if variance and len(counts) > 1:
        error = _spread(sums, counts, middle)
        effective = variance / error**2 if error else math.inf
    size = min(max(effective, fewest), float(counts.sum()))
    return proportion(middle * size, size)._replace(value=middle)


def proportion(hits: float, count: float) -> Mean:
    """Return a share of hits with Wilson's interval (Wilson 1927); all NaN for a count of 0.

    With p the share and n the count, its bounds are
    ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)``: it never leaves 0 to 1, and does
    not vanish where the share is 0 or 1.
    """
    if not count:
        return NOTHING
    hit_share, part = hits / count, Z * Z / count
    middle = (hit_share + part / 2) / (1 + part)
    half = Z * math.sqrt(hit_share * (1 - hit_share) / count + part / (4 * count)) / (1 + part)
    return Mean(hit_share, max(0.0, middle - half), min(1.0, middle + half))


def mean_of(parts: Sequence[Mean]) -> Mean:
    """Return the mean of independent means, each counting the same.

    Its bounds are as far away as theirs together: ``sqrt(sum of squared distances) / n``, below and
    above by themselves (Zou and Donner 2008), so that shares stay in 0 to 1.
    """
    middle = sum(part.value for part in parts) / len(parts)
    below = math.hypot(*(part.value - part.low for part in parts)) / len(parts)
    above = math.hypot(*(part.high - part.value for part in parts)) / len(parts)
    return Mean(middle, middle - below, middle + above)


def difference(values: Sequence[float], *, of_shares: bool) -> Mean:
    """Return the mean of paired differences, one for each sample, with its interval.

    Args:
        values: The differences.
        of_shares: Whether each is a difference of two values between 0 and 1. The interval is then
            that of Agresti and Min (2005), which does not vanish where all differences are equal:
            a normal interval after adding a difference of 1, one of -1 and two of 0, each with
            weight 1/2, and cut to -1 to 1. Otherwise it is the normal interval.
    """
    if not of_shares or not values:
        return mean(values)
    count = len(values) + 2
    middle = sum(values) / count
    variance = (sum(each * each for each in values) + 1) / count - middle * middle
    half = Z * math.sqrt(variance / count)
    return Mean(sum(values) / len(values), max(-1.0, middle - half), min(1.0, middle + half))


def _by_cluster(
    values: Sequence[float], clusters: Clusters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum and the number of the values of each cluster."""
    keys = range(len(values)) if clusters is None else clusters
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    sums, counts = np.zeros(len(places)), np.zeros(len(places))
    for key, value in zip(keys, values, strict=True):
        sums[places[key]] += value
        counts[places[key]] += 1
    return sums, counts


def _spread(sums: NDArray[np.float64], counts: NDArray[np.float64], middle: float) -> float:
    """Return the standard error of ``sum(sums) / sum(counts)``, linearized (Cochran 1977, 6.13)."""
    clusters = len(counts)
    squares = float(((sums - middle * counts) ** 2).sum())
    return math.sqrt(clusters / (clusters - 1) * squares) / float(counts.sum())
