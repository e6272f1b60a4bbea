"""Draws who states what, so that nothing but the truth tells which response is best.

Of every fact two values are in play, the right one and a wrong one. What the responses state is
drawn first, blind to which value is right; then the best response, evenly; and only then which of
the two values is the right one, among the possibilities that make that response the best. So every
response is the best with the same probability, whatever they all say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick

Pattern = tuple[bool | None, ...]
"""For each fact: which of its two values is stated; None leaves the fact out."""

Truth = tuple[bool, ...]
"""For each fact: which of its two values is right."""

_LEFT_OUT = 0.2
"""How often a fact is left out."""


class Flaws(NamedTuple):
    """Describes the flaws of a response; the smaller value is the better one.

    Attributes:
        wrong: Statements that are wrong.
        left_out: Facts that were asked for and are not stated.
    """

    wrong: int
    left_out: int


class GradedResponses(NamedTuple):
    """Holds what each response states, which one is best, and what is right."""

    patterns: tuple[Pattern, ...]
    best: int
    truth: Truth


def draw_patterns(rng: np.random.Generator, facts: int, responses: int) -> GradedResponses:
    """Return patterns, each of which is as likely as another to be the only best one.

    Args:
        rng: Draws all of it.
        facts: Facts that are asked for, 2 or more.
        responses: 2 to 4.
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
    """Return the flaws of a response, given what is right."""
    wrong = sum(
        said is not None and said != is_so for said, is_so in zip(pattern, truth, strict=True)
    )
    return Flaws(wrong, pattern.count(None))


def best_of(found: Sequence[Flaws]) -> int | None:
    """Return the place of the one with the fewest flaws; None if several have as few."""
    least = min(found)
    return found.index(least) if found.count(least) == 1 else None


def _pattern(rng: np.random.Generator, facts: int) -> Pattern:
    while True:
        stated = (rng.random(facts) >= _LEFT_OUT).tolist()
        said = (rng.random(facts) < 0.5).tolist()
        if any(stated):
            return tuple(each if there else None for each, there in zip(said, stated, strict=True))
