"""Writes responses of a given quality, whose length and form do not depend on the quality.

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

from .topics import RequiredFact

Pattern = tuple[bool | None, ...]
"""For each fact, the index of the stated value; None if the fact is omitted."""

Truth = tuple[bool, ...]
"""For each fact, the index of the right value."""

_LEFT_OUT = 0.2
"""Probability that a fact is omitted."""

GRADES = ("wrong", "partly wrong", "incomplete", "complete")
"""Complete: all facts are stated and right. Incomplete: only some, all right. Partly wrong: some
statements are wrong. Wrong: all statements are wrong."""

Claims = Sequence[str | None]
"""For each fact, the stated value, or None if the response omits the fact."""

_MOST_FILLED = 1.8

_BEFORE = (
    "Happy to help.",
    "Good question.",
    "Here is what I found.",
    "Let me go through it.",
    "I took some time for this.",
    "This is my answer to your question.",
    "To answer this, I went through it step by step.",
    "This one is easy to get wrong, so I was careful.",
    "Before I answered, I read the question twice.",
)

_AFTER = (
    "Hope it helps.",
    "That is all.",
    "I am sure of this.",
    "I checked it twice.",
    "Let me know if anything is unclear.",
    "A second look led me to the same result.",
    "Feel free to ask if you want to know more.",
    "You can verify it for yourself without much effort.",
    "I have left out everything that was not asked for.",
)


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


def grade_of(facts: Sequence[RequiredFact], claims: Claims) -> str:
    """Return the grade of a response, one of `GRADES`."""
    stated = [(fact.right, said) for fact, said in zip(facts, claims, strict=True) if said]
    wrong = sum(right != said for right, said in stated)
    if wrong:
        return "wrong" if wrong == len(stated) else "partly wrong"
    return "complete" if len(stated) == len(facts) else "incomplete"


def respond(rng: np.random.Generator, facts: Sequence[RequiredFact], claims: Claims) -> str:
    """Return a response that states certain values.

    It states facts in sentences that are drawn for each one. Sentences without information fill it
    up to a length that is independent of the claims: 1 to 1.8 times that of all facts.

    Args:
        rng: The generator.
        facts: Two or more.
        claims: The stated value of each fact, at least one.
    """
    stated = " ".join(
        str(rng.choice(fact.statements)).format(value)
        for fact, value in zip(facts, claims, strict=True)
        if value is not None
    )
    length = rng.uniform(1, _MOST_FILLED) * sum(map(_longest, facts))
    before, after = _filling(rng, length - len(stated))
    return " ".join([*before, stated, *after])


def _longest(fact: RequiredFact) -> int:
    """Return the length of the fact's longest statement, with a blank after it."""
    values = max(map(len, (fact.right, *fact.wrong)))
    return max(map(len, fact.statements)) + values - len("{}") + 1


def _filling(rng: np.random.Generator, room: float) -> tuple[list[str], list[str]]:
    """Return filler sentences for before and after, whose total length is near `room`."""
    chosen = set()
    sentences = (*_BEFORE, *_AFTER)
    for place in rng.permutation(len(sentences)):
        taken = len(sentences[place]) + 1
        if taken < 2 * room:  # nearer to `room` with it than without
            chosen.add(sentences[place])
            room -= taken
    return [each for each in _BEFORE if each in chosen], [each for each in _AFTER if each in chosen]
