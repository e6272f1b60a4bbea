"""Computes pass@k and avg@k of repeated samples, with intervals over samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from visenv.evaluation.intervals import Mean, mean, share
from visenv.evaluation.values import SampleKey
from visenv.types import Episode

ACCURACY = "accuracy"


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
