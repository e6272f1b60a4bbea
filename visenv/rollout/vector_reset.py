"""Converts the arguments of a reset of several environments to one `ResetRequest` for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.rollout.vector_result import ResetRequest
from visenv.seeding import seeds

Seeds = int | Sequence[int | None] | NDArray[np.integer[Any]] | None
"""One seed for all environments, or one seed for each."""

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
"""Options of `VisEnv.reset`: one mapping for all environments, or one for each."""


def spread_seeds(given: Seeds, count: int) -> list[int | None]:
    """Return a seed for each environment; a single seed is expanded to independent seeds.

    Raises:
        ConfigurationError: If `given` is not an integer, None, or a sequence that contains one
            integer or None for each environment.
    """
    if _is_integer(given):
        return list(seeds(np.random.SeedSequence(int(given)), count))  # type: ignore[arg-type]
    return each_seed(given, count)


def each_seed(given: Seeds, count: int) -> list[int | None]:
    """Return a seed for each environment; a single seed is used for all.

    Raises:
        ConfigurationError: If `given` is not an integer, None, or a sequence that contains one
            integer or None for each environment.
    """
    each: Any = given.tolist() if isinstance(given, np.ndarray) and given.ndim else given
    if each is None or _is_integer(each):
        each = [each] * count
    is_list = isinstance(each, Sequence) and not isinstance(each, str | bytes)
    if not is_list or len(each) != count or not all(map(_is_seed, each)):
        raise ConfigurationError(
            f"{count} environments need one seed, or {count} seeds (integers or None) in a list, a "
            f"tuple or an array of one dimension, got {given!r:.80}."
        )
    return [None if seed is None else int(seed) for seed in each]


def reset_requests(each: Sequence[int | None], options: Options) -> list[ResetRequest]:
    """Return the request for each environment.

    Args:
        each: The seed of each environment.
        options: One mapping of options for all environments, or one for each.

    Raises:
        ConfigurationError: If the numbers of options and of seeds differ.
    """
    count = len(each)
    each_options = options if isinstance(options, Sequence) else [options] * count
    if len(each_options) != count:
        raise ConfigurationError(
            f"{count} environments need one mapping of options, or {count}, got "
            f"{len(each_options)}."
        )
    pairs = zip(each, each_options, strict=True)
    return [ResetRequest(seed, dict(option or {})) for seed, option in pairs]


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_seed(value: object) -> bool:
    return value is None or _is_integer(value)
