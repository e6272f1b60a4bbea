"""Writes long answers to questions about a report, and plausible wrong values.

A wrong answer is worded by the same rules as a right one and has the same length. It differs in one
or two of number, name, year and direction, and its values occur elsewhere in the report. Only the
report shows which answer is right: among four values, the right one is not always the odd one out
or the middle one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from visenv.worlds.draws import pick, shuffled
from visenv.worlds.reports.report import Report

_MOST_WRONG = 3

_OPENINGS = (
    "According to the report of {company}, there is a clear answer for {topic}.",
    "The report of {company} deals with {topic}, and that settles the matter.",
    "I looked up {topic} in the report of {company}.",
    "What the report says on {topic} answers this.",
    "This can be read from what the report of {company} gives on {topic}.",
)
_CLOSINGS = (
    "I have checked the labels before saying so.",
    "The rest of the report says nothing to the contrary.",
    "Nothing beyond the {place} is needed to see this.",
    "The other sections of the report deal with different matters.",
    "That is as far as the report goes on this question.",
)


def responder(
    report: Report, topic: str, place: str, claims: Sequence[str]
) -> Callable[[np.random.Generator, str], str]:
    """Return a function that words an answer: an opening, a claim with the value, a closing.

    Args:
        report: The report of the question.
        topic: The topic of the answer.
        place: The name of the exhibit that holds the evidence, for example ``"table"``.
        claims: Sentences with ``{}`` in place of the value.
    """
    return partial(_respond, {"company": report.company, "topic": topic, "place": place}, claims)


def _respond(
    names: dict[str, str], claims: Sequence[str], rng: np.random.Generator, value: str
) -> str:
    opening, closing = pick(rng, _OPENINGS).format(**names), pick(rng, _CLOSINGS).format(**names)
    return f"{opening} {pick(rng, claims).format(value)} {closing}"


def others(rng: np.random.Generator, right: object, found: Iterable[object]) -> tuple[str, ...]:
    """Return up to three found values that differ from the right one, in random order."""
    different = dict.fromkeys(str(each) for each in found if each != right)
    return tuple(shuffled(rng, list(different))[:_MOST_WRONG])


def crossed(
    rng: np.random.Generator, words: tuple[str, str], numbers: tuple[int, int], form: str
) -> tuple[str, tuple[str, ...]]:
    """Return the right value, made of a word and a number, and the three other combinations.

    Args:
        rng: Orders the other combinations at random.
        words: The right word and the wrong one.
        numbers: The right number and the wrong one.
        form: Format string for word and number, for example ``"{} by {}"``.
    """
    right, *rest = (form.format(word, number) for word in words for number in numbers)
    return right, tuple(shuffled(rng, rest))


def different_places(rng: np.random.Generator, values: Sequence[int]) -> tuple[int, int]:
    """Return two indices whose values differ; if all values are equal, two different indices.

    Both orders are equally likely, so that no value is first more often.

    Args:
        rng: Draws the indices.
        values: At least two values.
    """
    while True:
        one, two = rng.permutation(len(values))[:2].tolist()
        if values[one] != values[two] or len(set(values)) == 1:
            return one, two
