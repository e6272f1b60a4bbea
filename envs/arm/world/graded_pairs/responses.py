"""Responses of a wanted quality, whose length says nothing about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .topic import Fact

GRADES = ("wrong", "partly wrong", "incomplete", "complete")
"""From the worst to the best. Complete: every fact, right. Incomplete: only some, right. Partly
wrong: every fact, some of them wrong. Wrong: every fact, all of them wrong."""

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


def respond(rng: np.random.Generator, facts: Sequence[Fact], grade: str) -> str:
    """A response of that grade.

    It states facts in sentences drawn anew each time, and is filled up with sentences that say
    nothing to a length drawn without regard to the grade: 1 to 1.8 times that of all facts.

    Args:
        rng: Draws all of it.
        facts: Two or more.
        grade: One of `GRADES`.
    """
    stated = " ".join(
        str(rng.choice(fact.statements)).format(value) for fact, value in _values(rng, facts, grade)
    )
    length = rng.uniform(1, _MOST_FILLED) * sum(map(_longest, facts))
    before, after = _filling(rng, length - len(stated))
    return " ".join([*before, stated, *after])


def _longest(fact: Fact) -> int:
    """Characters of the fact where it takes the most, with the blank after it."""
    values = max(map(len, (fact.right, *fact.wrong)))
    return max(map(len, fact.statements)) + values - len("{}") + 1


def _values(rng: np.random.Generator, facts: Sequence[Fact], grade: str) -> list[tuple[Fact, str]]:
    """The facts stated, in order, each with the value given."""
    some = {int(place) for place in rng.permutation(len(facts))[: rng.integers(1, len(facts))]}
    if grade == "incomplete":
        return [(fact, fact.right) for place, fact in enumerate(facts) if place in some]
    wrong = {"complete": set(), "partly wrong": some, "wrong": set(range(len(facts)))}[grade]
    return [
        (fact, str(rng.choice(fact.wrong)) if place in wrong else fact.right)
        for place, fact in enumerate(facts)
    ]


def _filling(rng: np.random.Generator, room: float) -> tuple[list[str], list[str]]:
    """Sentences for before and after that together come as close to `room` as they happen to."""
    chosen = set()
    sentences = (*_BEFORE, *_AFTER)
    for place in rng.permutation(len(sentences)):
        taken = len(sentences[place]) + 1
        if taken < 2 * room:  # nearer with it than without
            chosen.add(sentences[place])
            room -= taken
    return [each for each in _BEFORE if each in chosen], [each for each in _AFTER if each in chosen]
