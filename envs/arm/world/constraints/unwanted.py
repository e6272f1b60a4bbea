"""Creates texts for checks 7 and 8: texts that must not occur."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from visenv.worlds.draws import pick

from .prose import ConstrainedText, between, finished, listed, mixed, sentence, some, spread


class UnwantedText(NamedTuple):
    """Describes a text that must not occur.

    Attributes:
        text: The text that must not occur.
        hidden: A longer word that contains it.
        alike: A similar word that does not contain it.
    """

    text: str
    hidden: str
    alike: str


UNWANTED: Final = (
    UnwantedText("able", "remarkable", "ample"),
    UnwantedText("age", "village", "ace"),
    UnwantedText("art", "party", "act"),
    UnwantedText("cat", "delicate", "cut"),
    UnwantedText("ear", "pearls", "eel"),
    UnwantedText("even", "eleven", "oven"),
    UnwantedText("here", "sphere", "hero"),
    UnwantedText("like", "likely", "lake"),
    UnwantedText("over", "discovery", "oven"),
    UnwantedText("rain", "trainer", "ruin"),
    UnwantedText("use", "amuse", "us"),
    UnwantedText("very", "everything", "vary"),
)

_CARRIERS = (
    "Somebody wrote {it} on the wall",
    "The note said {it} in large letters",
    "Nobody could say what {it} meant",
    "We talked about {it} for an hour",
    "It all began with {it}",
)
_NONE_OF = (
    "The response must not contain any of these: {list}.",
    "Do not use any of the following anywhere, not even inside other words: {list}.",
    "None of {list} may occur in the text, in capitals or not.",
)
_NOT = (
    'The response must not contain "{it}".',
    'Do not write "{it}" anywhere, not even inside another word.',
    'The letters "{it}" may not occur in the text, in capitals or not.',
)


def contains_none(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text without any of several texts; a wrong text contains one of them once."""
    unwanted = some(rng, UNWANTED, between(rng, 2, 4))
    text, case = _with_or_without(rng, unwanted, keeps)
    substrings = [each.text for each in unwanted]
    constraint = pick(rng, _NONE_OF).format(list=listed(substrings))
    return ConstrainedText(text, constraint, {"substrings": substrings}, case)


def does_not_contain(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text without the given text; a wrong text contains it once."""
    unwanted = pick(rng, UNWANTED)
    text, case = _with_or_without(rng, [unwanted], keeps)
    constraint = pick(rng, _NOT).format(it=unwanted.text)
    return ConstrainedText(text, constraint, {"substring": unwanted.text}, case)


def _with_or_without(
    rng: np.random.Generator, unwanted: list[UnwantedText], keeps: bool
) -> tuple[str, str]:
    """Return a text that contains a look-alike of one of the texts, or the text itself."""
    text, hidden, alike = pick(rng, unwanted)
    kept = (("kept", ""), ("kept, with a look-alike", alike))
    broken = (
        ("it occurs", text),
        ("it occurs in capitals", text.upper()),
        ("it occurs inside a word", hidden),
    )
    case, word = pick(rng, kept if keeps else broken)
    made = _without(rng, unwanted, between(rng, 4, 7))
    if word:
        made = mixed(rng, made, [finished(rng, pick(rng, _CARRIERS).format(it=f'"{word}"'))])
    return spread(rng, made), case


def _without(rng: np.random.Generator, unwanted: list[UnwantedText], number: int) -> list[str]:
    """Return that many sentences that contain none of the texts."""
    made: list[str] = []
    while len(made) < number:
        new = sentence(rng)
        if not any(each.text in new.lower() for each in unwanted):
            made.append(new)
    return made
