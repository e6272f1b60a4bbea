"""Finds leaks in judging items: the right answer in a wrong response, or a mention of correctness.

Texts are compared by their words; case, punctuation, articles and the notation of numbers
("three", "3", "3.0", "1,000") are ignored.
"""

from __future__ import annotations

import re
import unicodedata

from visenv.data.json_rows import written_list
from visenv.errors import DataError

_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_ARTICLES = frozenset(("a", "an", "the"))
# fmt: off
_NUMERALS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)
_SIMPLE = frozenset((
    "yes", "no", "true", "false", "y", "n", "t", "f", "maybe", "none", "unknown", "not sure",
    "unanswerable", "not answerable", "cannot be determined",
))
# fmt: on

_CUES = re.compile(
    r"\b(?:in)?correct(?:ly|ness)?\b|\b(?:wrong|mistaken|erroneous|inaccurate)(?:ly)?\b"
    r"|\bmistakes?\b|\bmislead(?:s|ing|ingly)?\b|\bflawed\b|\bplausibl[ey]\b|\bhallucinat\w*"
    r"|\bdistractors?\b|\bground[ -]truth\b|\bresponse[ _]?\d\b"
    r"|\b(?:given|provided|reference|original|actual|true|real) (?:answer|solution|response)\b",
    re.IGNORECASE,
)


def words(text: str) -> str:
    """Return the relevant words of a text, with one blank before each and one at the end."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())
    found = [_word(word) for word in _WORD.findall(plain)]
    return " ".join(["", *(word for word in found if word not in _ARTICLES), ""])


def _word(word: str) -> str:
    word = re.sub(r"['’]s$", "", word)
    if _NUMBER.fullmatch(word):
        return f"{float(word):.15g}"
    return str(_NUMERALS.index(word)) if word in _NUMERALS else word


def states(text: str, answer: str) -> bool:
    """Return whether a text states an answer: its words in a row, or each item of a list.

    Raises:
        DataError: If the answer has no relevant word.
    """
    said = words(text)
    return all(fact in said for fact in _facts(answer))


def _facts(answer: str) -> list[str]:
    items = [answer]
    if answer.strip().startswith("["):
        try:
            items = [str(item) for item in written_list(answer)]
        except DataError:
            items = [answer]
    facts = [fact for fact in map(words, items) if fact.strip()]
    if not facts:
        raise DataError(f"the answer {answer!r:.80} has no word to search for")
    return facts


def is_too_simple(answer: str) -> bool:
    """Return whether an answer can be guessed, such as a bare yes or no."""
    said = words(answer).strip()
    return said in _SIMPLE or said == ""


def correctness_cue(text: str, *about: str) -> str | None:
    """Return the first word of a text about correctness that does not occur in `about`.

    For example, a sign can read "WRONG WAY": words of the question or the answer are not a cue.
    """
    allowed = {cue.casefold() for each in about for cue in _CUES.findall(each)}
    found = (match.group() for match in _CUES.finditer(text))
    return next((cue for cue in found if cue.casefold() not in allowed), None)
