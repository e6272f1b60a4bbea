"""Computes means and shares with their 95 % intervals, over samples that may be repeated.

Repeats of one sample are not independent. Each function therefore takes the cluster of every value,
and its interval is computed over clusters: it does not shrink because a sample was repeated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""

Clusters = Sequence[Hashable] | None
"""The cluster of each value, such as the sample of an episode. None means that each value is its
own cluster.
"""


class Mean(NamedTuple):
    """Holds a mean and its 95 % interval; the bounds are NaN if a single value gives none."""

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
    """Return the mean with the normal interval, whose standard error is that of `_spread`.

    Without repeats the interval is ``± 1.96 s / sqrt(n)``, where s is the sample standard
    deviation.
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
    ``(sum of sizes)² / sum of squared sizes`` (Kish 1965), and at most the number of values. If
    each cluster has one value, which is 0 or 1, it equals the number of values, and the interval is
    Wilson's.
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
    """Return a share of hits with Wilson's interval (Wilson 1927); all values are NaN for count 0.

    With p the share and n the count, the bounds are ``(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²))
    / (1 + z²/n)``. They are always from 0 to 1, and the interval has a positive width even if the
    share is 0 or 1.
    """
    if not count:
        return NOTHING
    hit_share, part = hits / count, Z * Z / count
    middle = (hit_share + part / 2) / (1 + part)
    half = Z * math.sqrt(hit_share * (1 - hit_share) / count + part / (4 * count)) / (1 + part)
    return Mean(hit_share, max(0.0, middle - half), min(1.0, middle + half))


def mean_of(parts: Sequence[Mean]) -> Mean:
    """Return the mean of independent means with equal weights.

    The distance of each bound from the mean is ``sqrt(sum of squared distances) / n`` of the bounds
    of the given means, separately below and above (Zou and Donner 2008), so that intervals of
    shares are within 0 to 1.
    """
    middle = sum(part.value for part in parts) / len(parts)
    below = math.hypot(*(part.value - part.low for part in parts)) / len(parts)
    above = math.hypot(*(part.high - part.value for part in parts)) / len(parts)
    return Mean(middle, middle - below, middle + above)


def difference(values: Sequence[float], *, of_shares: bool) -> Mean:
    """Return the mean of paired differences, one for each sample, with its interval.

    Args:
        values: The differences.
        of_shares: Whether each value is a difference of two values between 0 and 1. The interval is
            then that of Agresti and Min (2005), which has a positive width even if all differences
            are equal: a normal interval after adding a difference of 1, one of -1 and two of 0,
            each with weight 1/2, clipped to -1 to 1. Otherwise it is the normal interval.
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
