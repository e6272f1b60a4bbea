"""Writes responses of a given quality, whose length does not depend on the quality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .topics import RequiredFact

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
