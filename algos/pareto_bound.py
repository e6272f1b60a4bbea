"""Computes the bound H(n) of theorem 1, its maximizer, and the gated bound of corollary 1.

`check` compares the arguments of this module and of `group_size` with their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from visenv.errors import ConfigurationError

Range = tuple[Callable[[Any], object], str]
"""A test of a finite number, and the numbers that pass it, for messages."""

_POSITIVE: Final[Range] = (lambda value: value > 0, "finite numbers above 0")
_SHARE: Final[Range] = (lambda value: 0 <= value <= 1, "finite numbers of at least 0 and at most 1")
_COUNT: Final[Range] = (
    lambda value: isinstance(value, (int, np.integer)) and value >= 1,
    "whole numbers of at least 1",
)

RANGES: Final[dict[str, Range]] = {
    **dict.fromkeys(("cm", "margin_ratio", "delta", "sigma", "weights"), _POSITIVE),
    **dict.fromkeys(("beta", "probabilities"), _SHARE),
    **dict.fromkeys(("n", "components", "sizes", "trials"), _COUNT),
    "rewards": (lambda _: True, "finite numbers"),
}
"""The allowed values of the arguments of this module and of `visenv.algos.group_size`."""


def check(**arguments: Any) -> None:
    """Check that each argument, or each of its numbers, is in its range (`RANGES`).

    Raises:
        ConfigurationError: If an argument is out of its range, NaN, infinite or not a number. The
            message names the argument.
    """
    for name, value in arguments.items():
        is_allowed, allowed = RANGES[name]
        if not all(_is_finite(number) and is_allowed(number) for number in _numbers(value)):
            raise ConfigurationError(f"{name} must be {allowed}, got {value!r:.200}.")


def _numbers(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return value if isinstance(value, (list, tuple, range)) else (value,)


def _is_finite(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def exploitation_rate(
    delta: float, sigma: float, components: int, weights: Sequence[float] = ()
) -> float:
    """Return C m, the exponent of the bound.

    Args:
        delta: The margin of Pareto domination.
        sigma: The sub-Gaussian parameter of the noise; for Gaussian noise its standard deviation.
        components: The number of reward components, m.
        weights: The weights of the components; equal by default.

    Raises:
        ConfigurationError: If an argument is not positive and finite, the number of weights is not
            the number of components, or C m is too large or too small for a float.
    """
    check(delta=delta, sigma=sigma, components=components, weights=weights)
    if len(weights) not in (0, components):
        raise ConfigurationError(
            f"Expected a weight for each of {components} components, got {len(weights)}."
        )
    lightest, heaviest = (min(weights), max(weights)) if len(weights) else (1.0, 1.0)
    ratio = (delta / sigma) * (lightest / heaviest) / 2
    rate = components * ratio * ratio
    check(cm=rate)
    return rate


def pareto_bound(n: int, beta: float, cm: float) -> float:
    """Return H(n), the paper's lower bound (theorem 1).

    Args:
        n: The group size.
        beta: The probability of a Pareto-optimal response, 0 to 1.
        cm: C m.

    Raises:
        ConfigurationError: If an argument is out of its range.
    """
    check(n=n, beta=beta, cm=cm)
    return (1 - (1 - beta) ** n) * max(0.0, 1 - (n - 1) * math.exp(-cm))


def gated_bound(n: int, beta: float, cm: float, components: int, margin_ratio: float) -> float:
    """Return the bound with the outcome gate (corollary 1).

    The corollary denotes the group size by m, but means n.

    Args:
        n: The group size.
        beta: The probability of a correct and Pareto-optimal response.
        cm: C m, without the outcome.
        components: m, without the outcome.
        margin_ratio: gamma / sigma, the margin of the accuracy around the threshold.

    Raises:
        ConfigurationError: If an argument is out of its range.
    """
    check(n=n, beta=beta, cm=cm, components=components, margin_ratio=margin_ratio)
    right_side = max(0.0, 1 - n * math.exp(-(margin_ratio * margin_ratio) / 2))
    ranked = max(0.0, 1 - (n - 1) * math.exp(-cm * (components + 1) / components))
    return (1 - (1 - beta) ** n) * right_side * ranked


def best_group_size(beta: float, cm: float) -> int:
    """Return the integer that maximizes `pareto_bound`, or the smallest of several.

    H is log-concave below n = 1 + e^cm and 0 from there on, so it has one maximum.

    Raises:
        ConfigurationError: If an argument is out of its range.
    """
    check(beta=beta, cm=cm)
    if not beta:
        return 1
    low, high = 1, max(1, math.ceil(1 + math.exp(min(cm, 40.0))))
    while low < high:
        middle = (low + high) // 2
        if pareto_bound(middle + 1, beta, cm) > pareto_bound(middle, beta, cm):
            low = middle + 1
        else:
            high = middle
    return low


def approximate_group_size(beta: float, cm: float) -> float:
    """Return the paper's approximation ln(1 + beta e^(C m)) / beta (remark 2).

    Raises:
        ConfigurationError: If an argument is out of its range, or beta is 0.
    """
    check(beta=beta, cm=cm)
    if not beta:
        raise ConfigurationError(
            f"beta must be above 0, because the approximation divides by it, got {beta}."
        )
    return float(np.logaddexp(0.0, math.log(beta) + cm) / beta)
