"""Computes the group size by simulation and by the bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visenv.errors import ConfigurationError

from .bounds import best_group_size, exploitation_rate, pareto_bound
from .ranges import check, table_of

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
    table = table_of(rewards)
    chances = _chances(probabilities, len(table))
    check(sizes=sizes, trials=trials)
    if not len(sizes):
        raise ConfigurationError("Name at least one group size.")
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
    table = table_of(rewards)
    check(delta=delta)
    dominates = (table[:, None, :] >= table[None, :, :] + delta).all(axis=-1)
    return np.asarray(~dominates.any(axis=0), np.bool_)


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
