"""Creates texts for checks 9 to 14: the first or last words of sentences, paragraphs and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from visenv.worlds.draws import pick

from .prose import ConstrainedText, Maker, between, capitalized, clause, finished, sentences, spread

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


def _opened_literally(rng: np.random.Generator, opener: str) -> str:
    return finished(rng, f"{opener}, {clause(rng, between(rng, 4, 8))}")


def _not_opened_literally(rng: np.random.Generator, opener: str) -> tuple[str, str]:
    if rng.integers(2):
        return _opened_literally(rng, opener.upper()), "in capitals"
    return _opened_wrongly(rng, opener)


def _closed_literally(rng: np.random.Generator, closer: str) -> str:
    return capitalized(f"{clause(rng, between(rng, 4, 8))}, {closer}")


def _not_closed_literally(rng: np.random.Generator, closer: str) -> tuple[str, str]:
    words = closer.removesuffix(".")
    near = (
        (_closed_literally(rng, closer.upper()), "in capitals"),
        (_closed_literally(rng, f"{words}!"), "with another mark"),
    )
    return pick(rng, near) if rng.integers(2) else _closed_wrongly(rng, words)


class SentenceEdge(NamedTuple):
    """Describes one end of sentences, and functions that write sentences with words there.

    Attributes:
        phrases: The words that a constraint can require.
        wordings: The wordings of the constraint.
        right: Writes a sentence with the words at this end.
        wrong: Writes a sentence without them there, and names the kind of violation.
    """

    phrases: tuple[str, ...]
    wordings: tuple[str, ...]
    right: Callable[[np.random.Generator, str], str]
    wrong: Callable[[np.random.Generator, str], tuple[str, str]]


BEGIN: Final = SentenceEdge(OPENERS, _BEGIN, _opened, _opened_wrongly)
END: Final = SentenceEdge(CLOSERS, _END, _closed, _closed_wrongly)
LITERAL_BEGIN: Final = SentenceEdge(OPENERS, _BEGIN, _opened_literally, _not_opened_literally)
"""Variant for checks that compare letter for letter: no capitals and no emphasis."""
LITERAL_END: Final = SentenceEdge(
    tuple([f"{closer}." for closer in CLOSERS]), _END, _closed_literally, _not_closed_literally
)
"""Variant like `LITERAL_BEGIN`; the required words include the full stop of a sentence."""


def each_sentence_begins(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = BEGIN
) -> ConstrainedText:
    """Create sentences with the same first words; a wrong one has them later, or other words."""
    opener = pick(rng, edge.phrases)
    made, case = _all_but_one(rng, between(rng, 3, 6), opener, keeps, edge)
    constraint = _each(rng, edge, "Each sentence", opener)
    return ConstrainedText(spread(rng, made), constraint, {"substring": opener}, case)


def each_sentence_ends(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = END
) -> ConstrainedText:
    """Create sentences with the same last words; a wrong one has them elsewhere, or other words."""
    closer = pick(rng, edge.phrases)
    made, case = _all_but_one(rng, between(rng, 3, 6), closer, keeps, edge)
    constraint = _each(rng, edge, "Each sentence", closer)
    return ConstrainedText(spread(rng, made), constraint, {"substring": closer}, case)


def each_paragraph_begins(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = BEGIN
) -> ConstrainedText:
    """Create paragraphs with the same first words; a wrong one has other words."""
    opener = pick(rng, edge.phrases)
    made, case = _all_but_one(rng, between(rng, 2, 4), opener, keeps, edge)
    text = "\n\n".join([" ".join([each, *sentences(rng, between(rng, 0, 2))]) for each in made])
    return ConstrainedText(
        text, _each(rng, edge, "Each paragraph", opener), {"substring": opener}, case
    )


def each_paragraph_ends(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = END
) -> ConstrainedText:
    """Create paragraphs with the same last words; a wrong one has other words."""
    closer = pick(rng, edge.phrases)
    made, case = _all_but_one(rng, between(rng, 2, 4), closer, keeps, edge)
    text = "\n\n".join([" ".join([*sentences(rng, between(rng, 0, 2)), each]) for each in made])
    return ConstrainedText(
        text, _each(rng, edge, "Each paragraph", closer), {"substring": closer}, case
    )


def response_begins(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = BEGIN
) -> ConstrainedText:
    """Create a text that begins with certain words."""
    opener = pick(rng, edge.phrases)
    (first,), case = _all_but_one(rng, 1, opener, keeps, edge)
    text = spread(rng, [first, *sentences(rng, between(rng, 2, 5))])
    return ConstrainedText(
        text, _each(rng, edge, "The response", opener), {"substring": opener}, case
    )


def response_ends(
    rng: np.random.Generator, keeps: bool, edge: SentenceEdge = END
) -> ConstrainedText:
    """Create a text that ends with certain words."""
    closer = pick(rng, edge.phrases)
    (last,), case = _all_but_one(rng, 1, closer, keeps, edge)
    text = spread(rng, [*sentences(rng, between(rng, 2, 5)), last])
    return ConstrainedText(
        text, _each(rng, edge, "The response", closer), {"substring": closer}, case
    )


LITERAL: Final[Mapping[str, Maker]] = {
    "check_whether_each_sentence_begin_with_certain_substring": partial(
        each_sentence_begins, edge=LITERAL_BEGIN
    ),
    "check_whether_each_paragraph_begin_with_certain_substring": partial(
        each_paragraph_begins, edge=LITERAL_BEGIN
    ),
    "check_whether_each_paragraph_end_with_certain_substring": partial(
        each_paragraph_ends, edge=LITERAL_END
    ),
    "check_whether_each_sentence_end_with_certain_substring": partial(
        each_sentence_ends, edge=LITERAL_END
    ),
    "check_whether_whole_response_begin_with_certain_substring": partial(
        response_begins, edge=LITERAL_BEGIN
    ),
    "check_whether_whole_response_end_with_certain_substring": partial(
        response_ends, edge=LITERAL_END
    ),
}
"""Makers of texts by check, for dialects that compare letter for letter (``mmif``)."""


def _all_but_one(
    rng: np.random.Generator,
    number: int,
    phrase: str,
    keeps: bool,
    edge: SentenceEdge,
) -> tuple[list[str], str]:
    """Write right sentences, with one wrong sentence if `keeps` is False."""
    made = [edge.right(rng, phrase) for _ in range(number)]
    if keeps:
        return made, "kept"
    place = int(rng.integers(number))
    made[place], case = edge.wrong(rng, phrase)
    return made, case if number == 1 else f"{case} in one of {number}"


def _each(rng: np.random.Generator, edge: SentenceEdge, each: str, phrase: str) -> str:
    return pick(rng, edge.wordings).format(Each=each, each=each.lower(), it=phrase)
