"""Lists the allowed values of the options of all algorithms."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, Literal, get_args

from visenv.errors import ConfigurationError

from .advantage import Scale
from .correction import Bounds, Correction
from .credit import Credit
from .kl import Estimator

Baseline = Literal["none", "group"]

CHOICES = {
    "baseline": Baseline,
    "correction": Correction,
    "correction_bounds": Bounds,
    "credit": Credit,
    "kl_estimator": Estimator,
    "scale": Scale,
}
RANGES = {
    "clip_dual": (1.0, math.inf),
    "clip_high": (0.0, math.inf),
    "clip_low": (0.0, 1.0),
    "correction_high": (0.0, math.inf),
    "correction_low": (0.0, math.inf),
    "discount": (0.0, 1.0),
    "kl_coef": (0.0, math.inf),
    "max_ratio": (1.0, math.inf),
    "max_tokens": (1, math.inf),
    "min_ratio": (0.0, 1.0),
    "overlong_buffer": (1, math.inf),
    "overlong_limit": (1, math.inf),
    "overlong_penalty": (0.0, math.inf),
    "state_weight": (0.0, math.inf),
}
OPTIONAL = ("clip_dual", "correction_high", "overlong_limit")
ORDERED = (("correction_low", "correction_high"), ("overlong_buffer", "overlong_limit"))


def check(algorithm: Any) -> None:
    """Check every option of the algorithm that the tables contain.

    Raises:
        ConfigurationError: If an option has an invalid value. The message contains the option, the
            allowed values and the value.
    """
    given = {each.name: getattr(algorithm, each.name) for each in fields(algorithm)}
    for name, value in given.items():
        if name in CHOICES and value not in get_args(CHOICES[name]):
            allowed = get_args(CHOICES[name])
            raise ConfigurationError(f"{name} is one of {allowed}, got {value!r}.")
        if name in RANGES and not (value is None and name in OPTIONAL):
            _check_range(name, value)
    for small, large in ORDERED:
        _check_order(small, given[small], large, given[large])
    if "clip_dual" in given:
        _check_order("1 + clip_high", 1 + given["clip_high"], "clip_dual", given["clip_dual"])


def _check_range(name: str, value: Any) -> None:
    low, high = RANGES[name]
    number = isinstance(value, int | float) and math.isfinite(value)
    if not (number and low <= value <= high):
        raise ConfigurationError(f"{name} must lie between {low} and {high}, got {value!r}.")


def _check_order(small: str, value: float, large: str, limit: float | None) -> None:
    if limit is not None and value > limit:
        raise ConfigurationError(f"{large} must be at least {small}, got {limit} and {value}.")
