"""Draws from lists, as procedural worlds make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return one of the options; `Generator.choice` would first make an array of them."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """Return all options in random order."""
    return [options[place] for place in rng.permutation(len(options)).tolist()]
