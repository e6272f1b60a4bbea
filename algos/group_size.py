"""Plans the number of responses to sample for a prompt (Argos, section 3.3 and appendix E).

A group of n responses is drawn from the policy, and the response with the largest estimated reward
is reinforced. Each of m reward components is the true component plus noise. The paper gives a lower
bound of the probability that this response is delta-Pareto-optimal, which means that no response of
the policy is better by delta or more in every component.

    H(n) = (1 - (1 - beta)^n) * max(0, 1 - (n - 1) exp(-C m))
    C = delta^2 w_min^2 / (4 sigma^2 w_max^2)

**The bound is not proved.** The proof shows that the selected response is not dominated *within the
group*, and uses this as Pareto-optimality among *all* responses. A counterexample has three
responses whose rewards are 0, -0.99 delta and -delta in every component, drawn with the
probabilities 0, 0.3 and 0.7. The first response dominates the last one, but is never in a group.
For n = 2 and C m = 3, the bound is 0.4846 and the true probability is 0.3041. `plan_group_size`
therefore also simulates the selection.

`visenv.algos.pareto_bound` contains the formulas. This module simulates the selection, and
estimates beta and sigma from episodes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visenv.errors import ConfigurationError

from .pareto_bound import (
    approximate_group_size,
    best_group_size,
    check,
    exploitation_rate,
    gated_bound,
    pareto_bound,
)

__all__ = [
    "GroupSizePlan",
    "approximate_group_size",
    "best_group_size",
    "estimate_beta",
    "estimate_sigma",
    "exploitation_rate",
    "gated_bound",
    "pareto_bound",
    "pareto_optimal",
    "plan_group_size",
]

_DEVIATIONS = 4
"""The error of a simulated share, in standard deviations."""


class GroupSizePlan(NamedTuple):
    """Holds the group sizes by the bound and by simulation.

    Attributes:
        size: The smallest group size whose simulated probability equals the largest one, up to the
            error of the simulation.
        bound_size: The maximizer of the bound.
        beta: The share of responses that are Pareto-optimal.
        cm: C m.
        sizes: The group sizes that were simulated.
        bounds: H of each size.
        simulated: The probability of each size by simulation.
        is_bound_violated: Whether the bound exceeds the simulation by more than its error.
    """

    size: int
    bound_size: int
    beta: float
    cm: float
    sizes: tuple[int, ...]
    bounds: tuple[float, ...]
    simulated: tuple[float, ...]
    is_bound_violated: bool


def plan_group_size(
    rewards: ArrayLike,
    *,
    sigma: float,
    delta: float,
    probabilities: Sequence[float] | None = None,
    weights: Sequence[float] = (),
    sizes: Sequence[int] = tuple(range(1, 33)),
    trials: int = 20_000,
    seed: int = 0,
) -> GroupSizePlan:
    """Return the group size for responses with known rewards, by the bound and by simulation.

    Args:
        rewards: True rewards, ``[responses, components]``; for example, terms of episodes.
        sigma: The standard deviation of the Gaussian noise of each component.
        delta: The margin of Pareto domination.
        probabilities: The probability of each response under the policy; equal by default.
        weights: The weights of the components; equal by default.
        sizes: The group sizes to compare.
        trials: The number of groups that are drawn for each size.
        seed: The seed of the simulation.

    Warns:
        UserWarning: If the bound exceeds the simulated probability (see `visenv.algos.group_size`).

    Raises:
        ConfigurationError: If an argument is out of its range.
    """
    table = _table_of(rewards)
    chances = _chances(probabilities, len(table))
    check(sizes=sizes, trials=trials)
    if not len(sizes):
        raise ConfigurationError(
            "sizes must contain at least one group size, got an empty sequence."
        )
    cm = exploitation_rate(delta, sigma, table.shape[1], weights)
    optimal = pareto_optimal(table, delta)
    beta = min(float(chances[optimal].sum()), 1.0)
    factors = np.array(weights, np.float64) if len(weights) else np.ones(table.shape[1])
    deviation = sigma * float(np.sqrt((factors**2).sum()))
    simulated = tuple(
        _selection_probability(table @ factors, optimal, chances, deviation, n, trials, seed)
        for n in sizes
    )
    bounds = tuple(pareto_bound(n, beta, cm) for n in sizes)
    excess = [bound - share for bound, share in zip(bounds, simulated, strict=True)]
    worst = int(np.argmax(excess))
    is_violated = excess[worst] > _error(simulated[worst], trials)
    if is_violated:
        warnings.warn(
            f"The bound says {bounds[worst]:.3f} for groups of {sizes[worst]}, but the simulation "
            f"{simulated[worst]:.3f}: the proof of theorem 1 has a gap. Trust the simulation.",
            stacklevel=2,
        )
    most = max(simulated)
    enough = most - _error(most, trials)
    size = min(n for n, share in zip(sizes, simulated, strict=True) if share >= enough)
    return GroupSizePlan(
        size,
        best_group_size(beta, cm),
        beta,
        cm,
        tuple(sizes),
        bounds,
        simulated,
        is_violated,
    )


def pareto_optimal(rewards: ArrayLike, delta: float) -> NDArray[np.bool_]:
    """Return a mask of the responses that no other response dominates (definition 2).

    A response dominates another one if it is better by `delta` or more in every component.

    Args:
        rewards: True rewards, ``[responses, components]``.
        delta: The margin of domination.

    Returns:
        bool ``[responses]``.

    Raises:
        ConfigurationError: If an argument is out of its range.
    """
    table = _table_of(rewards)
    check(delta=delta)
    dominates = (table[:, None, :] >= table[None, :, :] + delta).all(axis=-1)
    return np.asarray(~dominates.any(axis=0), np.bool_)


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
        raise ConfigurationError(
            "An estimate of beta needs episodes with reward terms, got none: play the episodes "
            "with a reward."
        )
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


def _table_of(rewards: ArrayLike) -> NDArray[np.float64]:
    """Return rewards as ``[responses, components]``."""
    try:
        table = np.asarray(rewards, np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"rewards must be a table of numbers: {error}.") from error
    if table.ndim != 2 or not table.size:
        raise ConfigurationError(
            f"rewards must be [responses, components], got the shape {list(table.shape)}."
        )
    check(rewards=table)
    return table


def _chances(probabilities: Sequence[float] | None, responses: int) -> NDArray[np.float64]:
    if probabilities is None:
        return np.full(responses, 1 / responses)
    check(probabilities=probabilities)
    chances = np.asarray(probabilities, np.float64)
    if chances.shape != (responses,) or abs(float(chances.sum()) - 1) > 1e-6:
        raise ConfigurationError(
            f"probabilities must be {responses} numbers with the sum 1, got {len(chances)} with "
            f"the sum {float(chances.sum()):g}."
        )
    return np.asarray(chances / chances.sum(), np.float64)


def _selection_probability(
    means: NDArray[np.float64],
    optimal: NDArray[np.bool_],
    chances: NDArray[np.float64],
    deviation: float,
    n: int,
    trials: int,
    seed: int,
) -> float:
    """Return the share of groups whose best response, by noisy rewards, is Pareto-optimal."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(means), size=(trials, n), p=chances)
    noise = rng.normal(0.0, deviation, (trials, n))
    chosen = drawn[np.arange(trials), (means[drawn] + noise).argmax(axis=1)]
    return float(optimal[chosen].mean())


def _error(share: float, trials: int) -> float:
    return _DEVIATIONS * math.sqrt(max(share * (1 - share), 1 / trials) / trials)
