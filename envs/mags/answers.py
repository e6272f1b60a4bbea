"""Compares an answer with the references: exactly, by inclusion, and with a rule-based judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from visenv.text.normalize import canonical, same_text
from visenv.text.words import CJK

LONGEST = 1000
"""Maximum length of an answer that a judge compares."""

_TOKEN = re.compile(rf"(?:(?<![\w)])-)?\d+(?:[.,/:-]\d+)*[^\W_{CJK}]*|[{CJK}]|[^\W_{CJK}]+")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")

_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
_SYNONYMS = {
    "none": "0", "true": "yes", "false": "no", "grey": "gray", "kitty": "cat", "kitten": "cat",
    "puppy": "dog", "bike": "bicycle", "motorbike": "motorcycle", "couch": "sofa",
    "television": "tv", "airplane": "plane", "aeroplane": "plane", "automobile": "car",
    "photograph": "picture", "photo": "picture", "lady": "woman", "guy": "man", "kid": "child",
    "cellphone": "phone", "telephone": "phone", "fridge": "refrigerator", "trousers": "pants",
} | {word: str(number) for number, word in enumerate(_NUMBERS)}  # fmt: skip
_ARTICLES = {"a", "an", "the"}
_NEGATIONS = {
    "no", "not", "never", "non", "without", "neither", "nor", "cannot",
    "isn", "aren", "wasn", "weren", "doesn", "don", "didn", "hasn", "haven",
}  # fmt: skip


def is_exact(answer: str, references: Iterable[str]) -> bool:
    """Return whether the answer equals a reference.

    The comparison is that of `visenv.text.normalize.same_text`: letter case, markup and final
    punctuation do not count, signs do. "four" does not match "4".
    """
    return any(same_text(answer, reference) for reference in references)


def includes(answer: str, references: Iterable[str]) -> bool:
    """Return whether the tokens of a reference form a contiguous run in the answer.

    Tokens are runs of letters and digits, and whole numbers, decimals, fractions, ranges and times:
    "4" is in "4 buses", and not in "14", "-4", "4.5", "1/4", "3-4" or "$4.50". A Chinese, Japanese
    or Korean character is one token.
    """
    given = _tokens(answer)
    return any(_has_run(given, _tokens(reference)) for reference in references)


def rule_score(answer: str, references: Iterable[str]) -> float:
    """Return the score of the rule-based judge, 0 to 1: the token F1 of the closest reference.

    Number words, some synonyms and articles are normalized first. The score is 0 if only one of
    the answer and the reference contains a negation, or if the answer is longer than 1000
    characters.
    """
    if len(answer) > LONGEST:
        return 0.0
    given = _unified(answer)
    return max((_f1(given, _unified(reference)) for reference in references), default=0.0)


def _tokens(text: str) -> list[str]:
    found = _TOKEN.findall(canonical(text).casefold())
    return [each.replace(",", "") if _THOUSANDS.fullmatch(each) else each for each in found]


def _has_run(tokens: list[str], run: list[str]) -> bool:
    length = len(run)
    return length > 0 and any(
        tokens[place : place + length] == run for place in range(len(tokens) - length + 1)
    )


def _unified(text: str) -> list[str]:
    return [_SYNONYMS.get(token, token) for token in _tokens(text) if token not in _ARTICLES]


def _f1(given: list[str], reference: list[str]) -> float:
    if _NEGATIONS & {*given} != _NEGATIONS & {*reference}:
        return 0.0
    shared = (Counter(given) & Counter(reference)).total()
    return 2 * shared / (len(given) + len(reference)) if shared else 0.0
