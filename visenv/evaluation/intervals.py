"""Computes means, shares and pass@k with their 95 % intervals, over repeated samples.

Repeats of one sample are not independent. Each function therefore takes the cluster of every value,
and its interval is computed over clusters: it does not shrink because a sample was repeated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.evaluation.values import SampleKey
from visenv.types import Episode

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""

Clusters = Sequence[Hashable] | None
"""The cluster of each value, such as the sample of an episode. None means that each value is its
own cluster.
"""

ACCURACY = "accuracy"


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


def repeats_of(episodes: Iterable[Episode]) -> int:
    """Return the number of times that each sample was played: the size of the largest group."""
    return max((episode.member + 1 for episode in episodes), default=0)


def repeat_metrics(
    episodes: Iterable[tuple[SampleKey, Mapping[str, float]]], repeats: int
) -> dict[str, Mean]:
    """Return ``avg@n`` and ``pass@k`` of samples that were played `repeats` times (n).

    ``avg@n`` is the mean accuracy of all repeats. ``pass@k``, for k = 1, 2, 4, … and n, is the
    probability that one of k repeats is right (`pass_at_k`), averaged over samples. An episode is
    right if its accuracy is 1; an aborted episode is not. A sample with fewer than k repeats,
    because a file holds only a part of a run, is left out of ``pass@k``.

    Args:
        episodes: The sample of each episode, and the values with which it counts
            (`visenv.evaluation.values.counted_values`).
        repeats: The number n; with less than 2 the result is empty.
    """
    if repeats < 2:
        return {}
    accuracies = _accuracies(episodes)
    if not accuracies:
        return {}
    values = [value for each in accuracies.values() for value in each]
    samples = [sample for sample, each in accuracies.items() for _ in each]
    is_share = all(0.0 <= value <= 1.0 for value in values)
    means = {f"avg@{repeats}": (share if is_share else mean)(values, samples)}
    for k in _powers_of_two(repeats):
        passed = {
            sample: pass_at_k(len(each), sum(value >= 1.0 for value in each), k)
            for sample, each in accuracies.items()
            if len(each) >= k
        }
        # Every sample has the same weight and the same number of repeats.
        estimates = [value for value in passed.values() for _ in range(repeats)]
        if passed:
            means[f"pass@{k}"] = share(estimates, [each for each in passed for _ in range(repeats)])
    return means


def pass_at_k(count: int, right: int, k: int) -> float:
    """Return the unbiased estimate of the probability that one of k repeats is right.

    The estimate is ``1 - C(n - c, k) / C(n, k)`` for c right repeats of n (Chen et al. 2021,
    arXiv 2107.03374, equation 1).

    Args:
        count: The number n of repeats, at least k.
        right: The number c of right repeats.
        k: The number of repeats that are drawn.
    """
    return 1.0 - math.comb(count - right, k) / math.comb(count, k)


def _accuracies(
    episodes: Iterable[tuple[SampleKey, Mapping[str, float]]],
) -> dict[SampleKey, list[float]]:
    found: dict[SampleKey, list[float]] = defaultdict(list)
    for sample, values in episodes:
        if ACCURACY in values:
            found[sample].append(values[ACCURACY])
    return found


def _powers_of_two(most: int) -> Sequence[int]:
    """Return 1, 2, 4, … up to `most`, and `most` itself."""
    return [*(1 << power for power in range((most - 1).bit_length())), most]
