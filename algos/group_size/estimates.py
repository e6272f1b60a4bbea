"""Estimates beta and sigma from episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from visenv.errors import ConfigurationError

from .planning import pareto_optimal
from .ranges import check


def estimate_beta(groups: Sequence[Sequence[Mapping[str, float | None]]], delta: float) -> float:
    """Return the share of responses that no other response of their group dominates.

    The estimate is too high, because a response that dominates another one may be missing from its
    group. The error is larger for smaller groups; for groups of one the estimate is 1. Use large
    groups, and treat the estimate as an upper bound.

    Args:
        groups: The terms of the episodes of each group (`Episode.terms`). A term that does not
            apply counts as 0.
        delta: The margin of Pareto domination.

    Raises:
        ConfigurationError: If there is no episode, or a number is out of its range.
    """
    check(delta=delta)
    shares: list[bool] = []
    for group in groups:
        names = sorted({name for terms in group for name in terms})
        if names:
            table = [[terms.get(name) or 0.0 for name in names] for terms in group]
            shares += pareto_optimal(table, delta).tolist()
    if not shares:
        raise ConfigurationError("An estimate of beta needs at least one episode with terms.")
    return sum(shares) / len(shares)


def estimate_sigma(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the standard deviation of the noise of a term, from two scorings of the same episodes.

    The difference of two independent scorings has the variance 2 sigma^2.

    Raises:
        ConfigurationError: If the scorings differ in length or are empty, or a score is not finite.
    """
    if len(first) != len(second) or not len(first):
        raise ConfigurationError(
            f"Expected two scorings of the same episodes, got {len(first)} and {len(second)}."
        )
    check(rewards=first)
    check(rewards=second)
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return float(np.sqrt((differences**2).mean() / 2))
