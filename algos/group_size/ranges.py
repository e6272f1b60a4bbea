"""Checks the arguments of all functions of this package against their ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from visenv.errors import ConfigurationError


class Range(NamedTuple):
    """Describes the allowed values of an argument, which are always finite.

    Attributes:
        low: The lower end.
        high: The upper end, inclusive.
        is_open: Whether the lower end itself is refused.
        is_whole: Whether the value must be a whole number.
    """

    low: float
    high: float = math.inf
    is_open: bool = False
    is_whole: bool = False

    @override
    def __str__(self) -> str:
        kind = "whole numbers" if self.is_whole else "finite numbers"
        low = f"above {self.low:g}" if self.is_open else f"of at least {self.low:g}"
        return f"{kind} {low}" + (f" and at most {self.high:g}" if self.high < math.inf else "")


POSITIVE = Range(0, is_open=True)
SHARE = Range(0, 1)
COUNT = Range(1, is_whole=True)
ANY = Range(-math.inf, is_open=True)

RANGES = {
    "n": COUNT,
    "beta": SHARE,
    "cm": POSITIVE,
    "components": COUNT,
    "margin_ratio": POSITIVE,
    "delta": POSITIVE,
    "sigma": POSITIVE,
    "weights": POSITIVE,
    "probabilities": SHARE,
    "sizes": COUNT,
    "trials": COUNT,
    "rewards": ANY,
}


def check(**arguments: Any) -> None:
    """Check that each argument, or each of its numbers, is in its range (`RANGES`).

    Raises:
        ConfigurationError: If an argument is out of its range, NaN, infinite or not a number. The
            message names the argument.
    """
    for name, value in arguments.items():
        allowed = RANGES[name]
        if not all(_is_in(each, allowed) for each in _numbers(value)):
            raise ConfigurationError(f"{name} must be {allowed}, got {value!r:.200}.")


def table_of(rewards: ArrayLike) -> NDArray[np.float64]:
    """Return rewards as ``[responses, components]``.

    Raises:
        ConfigurationError: If they have another shape, are empty, or are not finite.
    """
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


def _numbers(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return value if isinstance(value, (list, tuple, range)) else (value,)


def _is_in(value: Any, allowed: Range) -> bool:
    kinds = (int, np.integer) if allowed.is_whole else (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds):
        return False
    above = value > allowed.low if allowed.is_open else value >= allowed.low
    return bool(above and value <= allowed.high and math.isfinite(value))
