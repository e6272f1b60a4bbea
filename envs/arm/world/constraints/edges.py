"""Texts for checks 9 to 14: what sentences, paragraphs and the whole text begin and end with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from visenv.worlds.draws import pick

from .made import Made
from .prose import between, clause, finished, sentences, spread

OPENERS: Final = (
    "Admittedly",
    "As we know",
    "Honestly",
    "In my view",
    "In truth",
    "Of course",
    "Surely",
    "To be fair",
)
CLOSERS: Final = (
    "as always",
    "by the sea",
    "for good reason",
    "in the end",
    "my friend",
    "of course",
    "on a Sunday",
    "with joy",
)

_BEGIN = (
    '{Each} must begin with "{it}".',
    'Begin {each} with "{it}".',
    'See to it that {each} starts with the words "{it}".',
)
_END = (
    '{Each} must end with "{it}".',
    'End {each} with "{it}".',
    'See to it that {each} closes with the words "{it}".',
)


def each_sentence_begins(rng: np.random.Generator, keeps: bool) -> Made:
    """Each sentence with the same words first; one has them second, or others."""
    opener = pick(rng, OPENERS)
    made, case = _all_but_one(rng, between(rng, 3, 6), opener, keeps, _opened, _opened_wrongly)
    constraint = _each(rng, _BEGIN, "Each sentence", opener)
    return Made(spread(rng, made), constraint, {"substring": opener}, case)


def each_sentence_ends(rng: np.random.Generator, keeps: bool) -> Made:
    """Each sentence with the same words last; one has them elsewhere, or others."""
    closer = pick(rng, CLOSERS)
    made, case = _all_but_one(rng, between(rng, 3, 6), closer, keeps, _closed, _closed_wrongly)
    constraint = _each(rng, _END, "Each sentence", closer)
    return Made(spread(rng, made), constraint, {"substring": closer}, case)


def each_paragraph_begins(rng: np.random.Generator, keeps: bool) -> Made:
    """Each paragraph with the same words first; one does not."""
    opener = pick(rng, OPENERS)
    made, case = _all_but_one(rng, between(rng, 2, 4), opener, keeps, _opened, _opened_wrongly)
    text = "\n\n".join([" ".join([each, *sentences(rng, between(rng, 0, 2))]) for each in made])
    return Made(text, _each(rng, _BEGIN, "Each paragraph", opener), {"substring": opener}, case)


def each_paragraph_ends(rng: np.random.Generator, keeps: bool) -> Made:
    """Each paragraph with the same words last; one does not."""
    closer = pick(rng, CLOSERS)
    made, case = _all_but_one(rng, between(rng, 2, 4), closer, keeps, _closed, _closed_wrongly)
    text = "\n\n".join([" ".join([*sentences(rng, between(rng, 0, 2)), each]) for each in made])
    return Made(text, _each(rng, _END, "Each paragraph", closer), {"substring": closer}, case)


def response_begins(rng: np.random.Generator, keeps: bool) -> Made:
    """The whole text with certain words first."""
    opener = pick(rng, OPENERS)
    (first,), case = _all_but_one(rng, 1, opener, keeps, _opened, _opened_wrongly)
    text = spread(rng, [first, *sentences(rng, between(rng, 2, 5))])
    return Made(text, _each(rng, _BEGIN, "The response", opener), {"substring": opener}, case)


def response_ends(rng: np.random.Generator, keeps: bool) -> Made:
    """The whole text with certain words last."""
    closer = pick(rng, CLOSERS)
    (last,), case = _all_but_one(rng, 1, closer, keeps, _closed, _closed_wrongly)
    text = spread(rng, [*sentences(rng, between(rng, 2, 5)), last])
    return Made(text, _each(rng, _END, "The response", closer), {"substring": closer}, case)


def _all_but_one(
    rng: np.random.Generator,
    number: int,
    phrase: str,
    keeps: bool,
    right: Callable[[np.random.Generator, str], str],
    wrong: Callable[[np.random.Generator, str], tuple[str, str]],
) -> tuple[list[str], str]:
    """Sentences made the right way, but for one where the constraint is to be broken."""
    made = [right(rng, phrase) for _ in range(number)]
    if keeps:
        return made, "kept"
    place = int(rng.integers(number))
    made[place], case = wrong(rng, phrase)
    return made, case if number == 1 else f"{case} in one of {number}"


def _opened(rng: np.random.Generator, opener: str) -> str:
    written = pick(rng, (opener, opener, opener.upper(), f"**{opener}**"))
    return finished(rng, f"{written}, {clause(rng, between(rng, 4, 8))}")


def _opened_wrongly(rng: np.random.Generator, opener: str) -> tuple[str, str]:
    words = clause(rng, between(rng, 4, 8))
    return pick(
        rng,
        (
            (finished(rng, words), "missing"),
            (finished(rng, f"{words}, {opener.lower()}"), "at the other end"),
            (_opened(rng, pick(rng, [each for each in OPENERS if each != opener])), "others"),
        ),
    )


def _closed(rng: np.random.Generator, closer: str) -> str:
    written = pick(rng, (closer, closer, closer.upper(), f"*{closer}*"))
    return finished(rng, f"{clause(rng, between(rng, 4, 8))}, {written}")


def _closed_wrongly(rng: np.random.Generator, closer: str) -> tuple[str, str]:
    words = clause(rng, between(rng, 4, 8))
    return pick(
        rng,
        (
            (finished(rng, words), "missing"),
            (finished(rng, f"{closer}, {words}"), "at the other end"),
            (_closed(rng, pick(rng, [each for each in CLOSERS if each != closer])), "others"),
        ),
    )


def _each(rng: np.random.Generator, wordings: tuple[str, ...], each: str, phrase: str) -> str:
    return pick(rng, wordings).format(Each=each, each=each.lower(), it=phrase)
