"""A question about a document of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ReportQuestion(NamedTuple):
    """A question whose evidence is known.

    Attributes:
        kind: A label to report by.
        text: What is asked.
        pages: Every page needed to answer, from 1.
        gold_query: Words that find these pages by their text.
        answer: The right value.
        wrong: Other values, all different, each wrong; those from the same document come first.
        respond: Words a response that claims a value.
    """

    kind: str
    text: str
    pages: tuple[int, ...]
    gold_query: str
    answer: str
    wrong: tuple[str, ...]
    respond: Callable[[np.random.Generator, str], str]
