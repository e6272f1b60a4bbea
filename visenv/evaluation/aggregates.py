"""Aggregates the scores of a few runs on several tasks, with stratified bootstrap intervals.

The method is that of Agarwal et al. (2021, arXiv:2108.13264), whose library is rliable: the
interquartile mean, performance profiles, and the probability of improvement. A resample draws, for
each task independently, as many runs as the task has, with replacement; the 95 % interval lies
between the percentiles 2.5 and 97.5 of the resamples. The draws have a fixed seed, so equal scores
give equal intervals. If a task has a single run, the bounds are NaN: its spread is unknown.

Scores are given as a sequence with an array ``[runs]`` for each task, float64, with at least one
run. Tasks may have different numbers of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visenv.evaluation.intervals import Mean

Floats = NDArray[np.float64]

_RESAMPLES = 10_000


class Profile(NamedTuple):
    """Holds a performance profile: the share of runs whose score exceeds each threshold.

    Attributes:
        shares: The shares, float64 ``[thresholds]``; each run counts equally.
        low: The lower bounds of the pointwise intervals, ``[thresholds]``.
        high: The upper bounds.
    """

    shares: Floats
    low: Floats
    high: Floats


def interquartile_mean(tasks: Sequence[ArrayLike]) -> Mean:
    """Return the mean of the middle half of the scores of all tasks, with its interval.

    A quarter of the scores, rounded down, is left out at each end.
    """
    known = _arrays(tasks)
    drawn = _trimmed(np.concatenate(_resamples(known, _generator()), axis=-1))
    return _with_bounds(float(_trimmed(np.concatenate(known))), drawn, _is_spread_known(known))


def difference_of_means(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> Mean:
    """Return the first interquartile mean minus the second one, with its interval.

    The runs of both are resampled independently.

    Args:
        first: The scores of one algorithm.
        second: The scores of another algorithm on the same tasks.
    """

    def statistic(one: Sequence[Floats], other: Sequence[Floats]) -> Floats:
        return _trimmed(np.concatenate(one, -1)) - _trimmed(np.concatenate(other, -1))

    return _of_pair(statistic, first, second)


def probability_of_improvement(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> Mean:
    """Return the probability that a run of one algorithm is better than a run of another one.

    It is the mean over tasks of the share of pairs of runs in which the first score is higher; a
    tie counts 1/2.

    Args:
        first: The scores of one algorithm.
        second: The scores of another algorithm on the same tasks.
    """

    def statistic(one: Sequence[Floats], other: Sequence[Floats]) -> Floats:
        shares = []
        for mine, theirs in zip(one, other, strict=True):
            gaps = mine[..., :, None] - theirs[..., None, :]  # [resamples, runs, other runs]
            shares.append(((np.sign(gaps) + 1) / 2).mean((-2, -1)))
        return np.asarray(np.mean(shares, axis=0))

    return _of_pair(statistic, first, second)


def performance_profile(tasks: Sequence[ArrayLike], thresholds: Sequence[float]) -> Profile:
    """Return the share of the runs of all tasks whose score is above each threshold.

    Args:
        tasks: The scores.
        thresholds: The scores at which the profile is computed.
    """
    known = _arrays(tasks)
    drawn = np.concatenate(_resamples(known, _generator()), axis=-1)
    pooled = np.concatenate(known)
    rows = [
        _with_bounds(
            float((pooled > each).mean()), (drawn > each).mean(-1), _is_spread_known(known)
        )
        for each in thresholds
    ]
    return Profile(*(np.array(column) for column in zip(*rows, strict=True)))


def _of_pair(
    statistic: Callable[[Sequence[Floats], Sequence[Floats]], Floats],
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
) -> Mean:
    one, other = _arrays(first), _arrays(second)
    if len(one) != len(other):
        raise ValueError(f"Expected scores of the same tasks, got {len(one)} and {len(other)}.")
    generator = _generator()
    drawn = statistic(_resamples(one, generator), _resamples(other, generator))
    known = _is_spread_known(one) and _is_spread_known(other)
    return _with_bounds(float(statistic(one, other)), drawn, known)


def _arrays(tasks: Sequence[ArrayLike]) -> list[Floats]:
    known = [np.asarray(task, np.float64) for task in tasks]
    if not known or not all(task.ndim == 1 and task.size for task in known):
        raise ValueError(
            "Expected at least one task, each with at least one score, got arrays of the shapes "
            f"{[task.shape for task in known]}."
        )
    return known


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)


def _resamples(tasks: Sequence[Floats], generator: np.random.Generator) -> list[Floats]:
    """Return the resampled scores of each task, ``[resamples, runs]``."""
    return [task[generator.integers(0, task.size, (_RESAMPLES, task.size))] for task in tasks]


def _trimmed(scores: Floats) -> Floats:
    """Return the interquartile mean over the last axis."""
    count = scores.shape[-1]
    cut = count // 4
    middle: Floats = np.sort(scores, axis=-1)[..., cut : count - cut].mean(-1)
    return middle


def _is_spread_known(tasks: Sequence[Floats]) -> bool:
    return all(task.size > 1 for task in tasks)


def _with_bounds(value: float, drawn: Floats, known: bool) -> Mean:
    low, high = np.percentile(drawn, (2.5, 97.5)) if known else (math.nan, math.nan)
    return Mean(value, float(low), float(high))
