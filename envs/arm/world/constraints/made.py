"""Defines `ConstrainedText`, the result of the functions that create texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np


class ConstrainedText(NamedTuple):
    """Holds a text and a constraint.

    Attributes:
        response: The text.
        constraint: The constraint, in words.
        arguments: The arguments of the check that decides it, without the text.
        case: The relation of the text to the constraint, for example ``"kept"``.
    """

    response: str
    constraint: str
    arguments: Mapping[str, Any]
    case: str


Maker: TypeAlias = Callable[[np.random.Generator, bool], ConstrainedText]
"""Creates a text that satisfies a constraint (True) or violates it."""
