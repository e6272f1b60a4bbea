"""Draws the statements of responses so that only the true facts reveal the best response.

Every fact has two possible values, the right one and a wrong one. The statements of the responses
are drawn first, without knowledge of the right values; then the best response, uniformly; then the
right value of each fact, among the combinations that make this response the best. Every response is
therefore the best with the same probability, independent of the statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick

Pattern = tuple[bool | None, ...]
"""For each fact, the index of the stated value; None if the fact is omitted."""

Truth = tuple[bool, ...]
"""For each fact, the index of the right value."""

_LEFT_OUT = 0.2
"""Probability that a fact is omitted."""


class Flaws(NamedTuple):
    """Describes the flaws of a response; the smaller value is the better one.

    Attributes:
        wrong: Number of wrong statements.
        left_out: Number of required facts that are not stated.
    """

    wrong: int
    left_out: int


class GradedResponses(NamedTuple):
    """Holds the pattern of each response, the best response, and the right values."""

    patterns: tuple[Pattern, ...]
    best: int
    truth: Truth


def draw_patterns(rng: np.random.Generator, facts: int, responses: int) -> GradedResponses:
    """Return patterns, each of which has the same probability of being the only best one.

    Args:
        rng: The generator.
        facts: Number of required facts, at least 2.
        responses: Number of responses, 2 to 4.
    """
    while True:
        patterns = tuple(_pattern(rng, facts) for _ in range(responses))
        truths: dict[int, list[Truth]] = {}
        for truth in product((False, True), repeat=facts):
            best = best_of([flaws(pattern, truth) for pattern in patterns])
            if best is not None:
                truths.setdefault(best, []).append(truth)
        if len(truths) == responses:
            best = int(rng.integers(responses))
            return GradedResponses(patterns, best, pick(rng, truths[best]))


def flaws(pattern: Pattern, truth: Truth) -> Flaws:
    """Return the flaws of a response, given the right values."""
    wrong = sum(
        said is not None and said != is_so for said, is_so in zip(pattern, truth, strict=True)
    )
    return Flaws(wrong, pattern.count(None))


def best_of(found: Sequence[Flaws]) -> int | None:
    """Return the index of the response with the fewest flaws; None if it is not unique."""
    least = min(found)
    return found.index(least) if found.count(least) == 1 else None


def _pattern(rng: np.random.Generator, facts: int) -> Pattern:
    while True:
        stated = (rng.random(facts) >= _LEFT_OUT).tolist()
        said = (rng.random(facts) < 0.5).tolist()
        if any(stated):
            return tuple(each if there else None for each, there in zip(said, stated, strict=True))
