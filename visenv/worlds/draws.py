"""Draws from lists, as procedural worlds make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of the options; `Generator.choice` makes an array of them first."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """All options in random order."""
    return [options[place] for place in rng.permutation(len(options)).tolist()]
