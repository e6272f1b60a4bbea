"""Writes prose with exact numbers of words, sentences and paragraphs.

Its words contain no digits and no abbreviations, and a sentence has one punctuation mark, at its
end. All counts are therefore known by construction, without a sentence splitter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from visenv.worlds.draws import pick, shuffled

T = TypeVar("T")


class ConstrainedText(NamedTuple):
    """Holds a text and a constraint.

    Attributes:
        response: The text.
        constraint: The constraint, in words.
        arguments: The arguments of the check that decides it, without the text.
        case: The relation of the text to the constraint, for example ``"kept"``.
    """

    response: str
    constraint: str
    arguments: Mapping[str, Any]
    case: str


Maker: TypeAlias = Callable[[np.random.Generator, bool], ConstrainedText]
"""Creates a text that satisfies a constraint (True) or violates it."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as a tuple."""
    return tuple(text.split())


_NOUNS: Final = words_of("""
baker boat bridge clerk cloud crowd dog door driver farmer field fisherman fountain guest hill
horse house kitchen ladder light market mayor mill museum owl painter path pilot pond porter
queue road roof sailor school singer student table tailor tower train tree visitor wall window
""")

_ADJECTIVES: Final = words_of("""
blue bright careful clever cold empty friendly gentle golden grey happy heavy huge lonely lucky
modern muddy narrow noisy patient plain polite proud quiet rusty shy silent small steep strange
tired tiny warm white wooden young
""")

_VERBS: Final = words_of("""
appears arrives begins breathes changes disappears falls grows hesitates hurries listens moves
pauses remains rests returns sinks sleeps smiles stands starts stops survives trembles turns waits
wakes wanders whistles wins
""")

_ADVERBS: Final = words_of("""
again alone calmly carefully finally gladly lately loudly nearby often once outside quickly quietly
sadly slowly softly somehow suddenly today together twice
""")

_TIMES: Final = (
    "at dawn",
    "at dusk",
    "at noon",
    "every morning",
    "every week",
    "in autumn",
    "in spring",
    "in winter",
    "last night",
    "on time",
    "this year",
    "until midnight",
)

_PREPOSITIONS: Final = words_of("above behind below beside beyond near past towards under without")

_CONNECTIVES: Final = words_of("although and because but so unless until when while")

_LONGEST_CLAUSE = 9

_SHORTEST = 3


def between(rng: np.random.Generator, lowest: int, highest: int) -> int:
    """Return a whole number from `lowest` to `highest`, both included."""
    return int(rng.integers(lowest, highest + 1))


def capitalized(text: str) -> str:
    """Return the text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def clause(rng: np.random.Generator, words: int) -> str:
    """Return a statement without capital letter and full stop, of `words` words, at least 3."""
    if words <= _LONGEST_CLAUSE:
        return _simple_clause(rng, words)
    first = between(rng, _SHORTEST, min(_LONGEST_CLAUSE, words - 1 - _SHORTEST))
    rest = clause(rng, words - 1 - first)
    return f"{_simple_clause(rng, first)} {pick(rng, _CONNECTIVES)} {rest}"


def _simple_clause(rng: np.random.Generator, words: int) -> str:
    single, double, triple = _ADDED[words - _SHORTEST]
    before = rng.integers(2) and single
    parts = ["the", pick(rng, _ADJECTIVES) if before else "", pick(rng, _NOUNS), pick(rng, _VERBS)]
    if single and not before:
        parts.append(pick(rng, _ADVERBS))
    if triple:
        parts.append(f"{pick(rng, _PREPOSITIONS)} the {pick(rng, _NOUNS)}")
    if double:
        parts.append(pick(rng, _TIMES))
    return " ".join([part for part in parts if part])


# By the number of words beyond "the boat waits": whether each of three additions is made.
_ADDED: Final = (
    (False, False, False),
    (True, False, False),
    (False, True, False),
    (False, False, True),
    (True, False, True),
    (False, True, True),
    (True, True, True),
)


def sentence(rng: np.random.Generator, words: int = 0) -> str:
    """Return a sentence of exactly `words` words, at least 3; by default of 5 to 12."""
    return finished(rng, clause(rng, words or between(rng, 5, 12)))


def finished(rng: np.random.Generator, statement: str) -> str:
    """Return a statement with its capital letter and its punctuation mark."""
    return capitalized(statement) + ("." if rng.integers(6) else "!")


def sentences(rng: np.random.Generator, number: int) -> list[str]:
    """Return that many sentences."""
    return [sentence(rng) for _ in range(number)]


def paragraph_of_words(rng: np.random.Generator, words: int) -> str:
    """Return sentences with exactly `words` words together, at least 3."""
    made, left = [], words
    while left > 14:
        length = between(rng, 5, 11)
        made.append(sentence(rng, length))
        left -= length
    return " ".join([*made, sentence(rng, left)])


def paragraphs(rng: np.random.Generator, sentence_numbers: Sequence[int]) -> str:
    """Return a text of paragraphs with these numbers of sentences."""
    return "\n\n".join([" ".join(sentences(rng, number)) for number in sentence_numbers])


def spread(rng: np.random.Generator, made: Sequence[str]) -> str:
    """Return the sentences in their order, split into one to three paragraphs."""
    breaks = set(rng.integers(1, len(made) + 2, size=2).tolist())
    text = made[0]
    for place, each in enumerate(made[1:], start=1):
        text += ("\n\n" if place in breaks else " ") + each
    return text


def some(rng: np.random.Generator, options: Sequence[T], number: int) -> list[T]:
    """Return that many different options, in any order."""
    return shuffled(rng, options)[:number]


def mixed(rng: np.random.Generator, made: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the sentences of both lists, in any order."""
    return shuffled(rng, [*made, *new])


def listed(texts: Sequence[str]) -> str:
    """Return the texts in quotation marks, one after the other."""
    return ", ".join([f'"{text}"' for text in texts])
