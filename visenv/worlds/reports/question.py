"""Defines a question about a document of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ReportQuestion(NamedTuple):
    """Holds a question whose evidence is known.

    Attributes:
        kind: A label for statistics.
        text: The question.
        pages: All pages that are needed for the answer, from 1.
        gold_query: Words that find these pages by their text.
        answer: The right value.
        wrong: Different wrong values; those from the same document come first.
        respond: Words a response that claims a value.
    """

    kind: str
    text: str
    pages: tuple[int, ...]
    gold_query: str
    answer: str
    wrong: tuple[str, ...]
    respond: Callable[[np.random.Generator, str], str]
