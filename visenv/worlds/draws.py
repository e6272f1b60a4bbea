"""Draws random items from lists, for procedural worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return a random option; unlike `Generator.choice`, do not convert the options to an array."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """Return all options in random order."""
    return [options[place] for place in rng.permutation(len(options)).tolist()]
