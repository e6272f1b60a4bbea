"""Scores whether an answer is right (Argos, eq. 6-8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import canonical, comparable, same_text
from visenv.types import Sample
from visenv.verifier.teachers import EquivalenceJudge

AnswerKind = Literal["choice", "whole", "decimal", "phrase", "open"]

TOLERANCE = Decimal("0.05")
"""The largest relative error of a decimal."""

_MOST_WORDS = 4
"""Maximum number of words of a short phrase, which is compared exactly. A judge scores longer
answers."""

LETTER = re.compile(r"\(?([A-Za-z])(?:[).:]{1,2}\s?|\s|$)(.*)", re.DOTALL)
"""Matches an option by its letter, with or without its text: ``B``, ``(B)`` or ``B. red``."""

_NUMBER = re.compile(r"([+-]?)(?=\.?\d)(\d{1,3}(?:,\d{3}){1,6}|\d{1,20})?(\.\d{1,20})?\s?%?")


def answer_kind(sample: Sample) -> AnswerKind:
    """Return the kind of comparison for a sample, from its options and accepted answers."""
    if options_of(sample):
        return "choice"
    truth = sample.answers[0] if sample.answers else ""
    number = read_number(truth)
    if number is not None:
        return "decimal" if _has_decimals(truth) else "whole"
    return "phrase" if len(truth.split()) <= _MOST_WORDS else "open"


async def outcome_score(
    sample: Sample, answer: str, judge: EquivalenceJudge | None = None
) -> float:
    """Return 1 if the answer is right, otherwise 0.

    The judge scores open answers only; if it is None, they are compared exactly. An answer longer
    than `visenv.rewards.vqa.LONGEST_ANSWER` is wrong, and is not sent to the judge.

    Raises:
        ServiceError: If the judge failed.
    """
    if rule_score(sample, answer) == 1.0:
        return 1.0
    if judge is None or answer_kind(sample) != "open":
        return 0.0
    if not answer.strip() or is_too_long(answer):
        return 0.0
    for truth in sample.answers:
        if await judge.are_equivalent(sample, answer, truth):
            return 1.0
    return 0.0


def rule_score(sample: Sample, answer: str) -> float:
    """Return 1 if the answer is right by the rules alone, otherwise 0."""
    if is_too_long(answer):
        return 0.0
    options = options_of(sample)
    return float(any(matches(answer, truth, options) for truth in sample.answers))


def matches(answer: str, truth: str, options: Sequence[str] = ()) -> bool:
    """Return whether an answer matches a true answer.

    Options match if both texts select the same one: by its letter, its text or both ("B. red").
    Whole numbers match exactly. Decimals match if ``|answer - truth| / max(|truth|, 1) <= 0.05``.
    Other texts match by `visenv.text.normalize.same_text`: case, markup and final punctuation do
    not count, signs do, and an empty text matches nothing.
    """
    if options:
        chosen, right = option_named(answer, options), option_named(truth, options)
        return chosen is not None and chosen == right
    number, true_number = read_number(answer), read_number(truth)
    if true_number is None or number is None:
        return same_text(answer, truth)
    if not _has_decimals(truth):
        return number == true_number
    return abs(number - true_number) <= TOLERANCE * max(abs(true_number), Decimal(1))


def read_number(text: str) -> Decimal | None:
    """Return a decimal number such as ``-3``, ``.5``, ``1,000`` or ``5%`` (which is 5), or None."""
    found = _NUMBER.fullmatch(canonical(text).strip().removesuffix("."))
    if found is None:
        return None
    sign, whole, fraction = found.groups()
    minus = "-" if sign == "-" else ""
    return Decimal(f"{minus}{(whole or '0').replace(',', '')}{fraction or ''}")


def options_of(sample: Sample) -> Sequence[str]:
    """Return the options of a multiple-choice question, in the order of their letters."""
    return getattr(sample.ground_truth, "options", ())


def option_named(answer: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that an answer selects, from 0, or None.

    An answer selects an option by its letter, its text or both.
    """
    given = comparable(answer)
    texts = [comparable(option) for option in options]
    if given and given in texts:
        return texts.index(given)
    found = LETTER.fullmatch(given)
    place = ord(found[1]) - ord("a") if found else len(texts)
    if found is None or place >= len(texts) or found[2] not in ("", texts[place]):
        return None
    return place


def _has_decimals(truth: str) -> bool:
    """Return whether a number is written with decimals; a final full stop does not count."""
    return "." in truth.strip().removesuffix(".")
