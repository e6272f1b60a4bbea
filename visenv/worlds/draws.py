"""Draws random items from lists, and checks ranges of seeds, for procedural worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from visenv.errors import ConfigurationError

T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return a random option; unlike `Generator.choice`, do not convert the options to an array."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """Return all options in random order."""
    return [options[place] for place in rng.permutation(len(options)).tolist()]


def checked_range(name: str, seeds: Sequence[int], end: int) -> tuple[int, int]:
    """Return a range of seeds, ``[first, end of the range)``.

    Args:
        name: The name of the option, for the error.
        seeds: The two seeds.
        end: The end of all seeds.

    Raises:
        ConfigurationError: If these are not two seeds from 0 to `end`, the first below the second.
    """
    given = tuple(seeds)
    if len(given) == 2 and 0 <= given[0] < given[1] <= end:
        return given
    raise ConfigurationError(
        f"{name} must be two seeds from 0 to {end}, the first below the second; got {given}."
    )
