"""Defines what a maker of texts returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np


class ConstrainedText(NamedTuple):
    """A text and a constraint.

    Attributes:
        response: The text.
        constraint: What it has to fulfil, in words.
        arguments: Of the check that decides it, but the text.
        case: How the text stands to the constraint, for example ``"kept"``, ``"one too many"``.
    """

    response: str
    constraint: str
    arguments: Mapping[str, Any]
    case: str


Maker: TypeAlias = Callable[[np.random.Generator, bool], ConstrainedText]
"""Makes a text that keeps to a constraint (True) or does not."""
