"""Creates texts for checks 1 to 6: numbers of paragraphs, sentences and words."""

from __future__ import annotations

import numpy as np

from visenv.worlds.draws import pick

from .amounts import Amount, draw_amount, draw_count
from .prose import ConstrainedText, between, paragraph_of_words, paragraphs, sentences, spread

_ORDINALS = ("first", "second", "third", "fourth", "fifth")

_HAVE = (
    "The response must have {amount}.",
    "Write {amount}.",
    "The answer should consist of {amount} in total.",
    "Your text has to contain {amount}, counted over the whole text.",
)
_EACH_HAS = (
    "Each paragraph must have {amount}.",
    "Every paragraph of the response should contain {amount}.",
    "In every paragraph, write {amount}.",
)
_RANGES = (
    "Write {number} paragraphs: {list}.",
    "The response must have {number} paragraphs, {list}.",
    "Divide the answer into {number} paragraphs, {list}.",
)


def paragraph_number(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with a number of paragraphs."""
    amount = draw_amount(rng, 2, 5)
    count = draw_count(rng, amount, keeps)
    text = paragraphs(rng, [between(rng, 1, 3) for _ in range(count.number)])
    constraint = pick(rng, _HAVE).format(amount=amount.of("paragraph"))
    return ConstrainedText(text, constraint, amount.bounds(), count.case)


def sentence_number(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with a number of sentences."""
    amount = draw_amount(rng, 2, 9)
    count = draw_count(rng, amount, keeps)
    text = spread(rng, sentences(rng, count.number))
    constraint = pick(rng, _HAVE).format(amount=amount.of("sentence"))
    return ConstrainedText(text, constraint, amount.bounds(), count.case)


def each_paragraph_sentence_number(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create paragraphs with a number of sentences each; a wrong text has one wrong paragraph."""
    amount = draw_amount(rng, 2, 5)
    numbers, case = _numbers(rng, [amount] * between(rng, 2, 4), keeps)
    constraint = pick(rng, _EACH_HAS).format(amount=amount.of("sentence"))
    return ConstrainedText(paragraphs(rng, numbers), constraint, amount.bounds(), case)


def each_paragraph_sentence_number_list(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create paragraphs with given numbers of sentences; a wrong one differs or is missing."""
    amounts = [_closed(rng) for _ in range(between(rng, 2, 4))]
    paragraph_misses = keeps or bool(rng.integers(3))
    numbers, case = _numbers(rng, amounts, keeps or not paragraph_misses)
    if not paragraph_misses:
        numbers, case = [*numbers, between(rng, 1, 3)], "a paragraph too many"
        if rng.integers(2):
            numbers, case = numbers[:-2], "a paragraph too few"
    parts = [
        f"the {ordinal} with {amount.of('sentence')}"
        for ordinal, amount in zip(_ORDINALS, amounts, strict=False)
    ]
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}"
    constraint = pick(rng, _RANGES).format(number=len(amounts), list=listed)
    ranges = [[amount.lower, amount.upper] for amount in amounts]
    return ConstrainedText(paragraphs(rng, numbers), constraint, {"ranges": ranges}, case)


def word_count(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with a number of words."""
    amount = draw_amount(rng, 30, 120)
    count = draw_count(rng, amount, keeps, least=20, spare=20)
    first = between(rng, 8, 12)
    parts = [paragraph_of_words(rng, first), paragraph_of_words(rng, count.number - first)]
    text = pick(rng, (" ", "\n\n")).join(parts)
    constraint = pick(rng, _HAVE).format(amount=amount.of("word"))
    return ConstrainedText(text, constraint, amount.bounds(), count.case)


def each_paragraph_word_count(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create paragraphs with a number of words each; a wrong text has one wrong paragraph."""
    amount = draw_amount(rng, 12, 40)
    numbers, case = _numbers(rng, [amount] * between(rng, 2, 4), keeps, least=6, spare=10)
    text = "\n\n".join([paragraph_of_words(rng, number) for number in numbers])
    constraint = pick(rng, _EACH_HAS).format(amount=amount.of("word"))
    return ConstrainedText(text, constraint, amount.bounds(), case)


def _closed(rng: np.random.Generator) -> Amount:
    """Return an amount with an upper bound, without which a list of ranges would read badly."""
    lower = between(rng, 1, 3)
    upper = lower + between(rng, 0, 2)
    words = f"exactly {lower}" if lower == upper else f"{lower} to {upper}"
    return Amount(lower, upper, words)


def _numbers(
    rng: np.random.Generator,
    amounts: list[Amount],
    keeps: bool,
    *,
    least: int = 1,
    spare: int = 2,
) -> tuple[list[int], str]:
    """Return a number for each amount, and a description of their relation to the amounts.

    If `keeps` is False, one number is outside its amount.
    """
    kept = [draw_count(rng, each, True, least=least, spare=spare).number for each in amounts]
    if keeps:
        return kept, "kept"
    place = int(rng.integers(len(amounts)))
    missed = draw_count(rng, amounts[place], False, least=least, spare=spare)
    kept[place] = missed.number
    return kept, f"{missed.case} in one of {len(kept)} paragraphs"
