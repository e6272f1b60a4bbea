"""Marks the mentions of candidates in a text: one character stands for one mention or list.

The parsers replace "B", "(B)" or the text of option B by a character of Unicode's private area, so
that the patterns of `visenv.text.claims` are about mentions and not about options or verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from visenv.text.words import CJK

UNKNOWN = 255
"""The label of a candidate that does not exist."""

Labels = tuple[int, ...]
"""The candidates of a mention: one, or those of a list."""

_BARE, _MARKED, _TEXT, _LIST, _LAST = 0xE000, 0xE100, 0xE200, 0xE300, 0xF8FF
ONE = "[\ue000-\ue2ff]"
"""Matches a mention that is no list."""

ITEM = re.compile("[\ue000-\uf8ff]")
"""Matches a mention or a list."""

SPACE = "[^\\w\ue000-\uf8ff]*"
"""Matches blanks and punctuation without a mention."""

NAME = "[\ue000-\ue1ff]"
"""Matches a mention by name, which is not the text of a candidate."""

_LETTER, _WORDS = "[\ue000-\ue0ff]", "[\ue200-\ue2ff]"
_EMBEDDED = re.compile(f"(?<=[{CJK}]){_LETTER}|{_LETTER}(?=[{CJK}])")
_REPEATED = re.compile(rf"({ONE})[\s):|-]{{0,4}}({_WORDS})")
_NOUN = r"(?:(?:the|an)\s)?(?:(?:option|answer|choice|response)s?\s?[#(]?)?"
_JOIN = (
    r"(?:\s?[,/&+|]\s?(?:\(?(?:and/or|and|or|nor)\s)?"
    rf"|\s\(?(?:and/or|and|or|nor|as well as|through|to)\s){_NOUN}"
)
_LISTED = re.compile(
    rf"{NAME}(?:{_JOIN}{NAME}\)?|(?<={_LETTER})\s?{_LETTER}(?=\W|$))+"
    rf"|{_WORDS}(?:{_JOIN}{_WORDS}\)?|\s{_WORDS}(?=\W|$))+"
)
_ALTERNATIVES = re.compile(r"\b(?:or|nor)\b")
_LAST_OF_LIST = re.compile(rf",\s?{ONE}$")
_SUBJECT_OF = re.compile(r"\s?(?:\w+s|was|would|could|can|might|may|should|did|had)\b")
_QUANTIFIED = re.compile(r"\b(?:none|neither|all|each|both|any|one|either)(?: of)?\s?$")


def mention(label: int | None, kind: Literal["bare", "marked", "text"] = "bare") -> str:
    """Return the character for a mention of a candidate.

    Args:
        label: The index of the candidate, below 255; None for one that does not exist.
        kind: ``"bare"`` for a name that may mean something else in a sentence (``B``); ``"marked"``
            for a name in brackets (``(B)``); ``"text"`` for the text of the candidate. The latter
            two are firm.
    """
    first = {"bare": _BARE, "marked": _MARKED, "text": _TEXT}[kind]
    return chr(first + (UNKNOWN if label is None else label))


def without_mentions(text: str) -> str:
    """Return the text without the characters that stand for mentions, so that it fakes none."""
    return text if text.isascii() else ITEM.sub("\ufffd", text)


def is_firm(item: str) -> bool:
    """Return whether a mention can be nothing else."""
    return ord(item) >= _MARKED


def is_words(item: str) -> bool:
    """Return whether a mention is the text of a candidate."""
    return _TEXT <= ord(item) < _LIST


def labels_in(text: str, lists: Sequence[Labels]) -> Iterator[Labels]:
    """Yield the candidates of each mention and list in a text."""
    for item in ITEM.findall(text):
        code = ord(item)
        yield lists[code - _LIST] if code >= _LIST else (code % 0x100,)


def with_lists(text: str) -> tuple[str, list[Labels]]:
    """Return the text with one character for each list of mentions, and the lists.

    A letter inside a Chinese, Japanese or Korean word is `UNKNOWN`. A label and its text
    (``(B) blue``) are one mention. The labels of alternatives ("A or B") are `UNKNOWN`, twice.
    """
    plain = _REPEATED.sub(_once, _EMBEDDED.sub(chr(_BARE + UNKNOWN), text))
    lists: list[Labels] = []

    def character(found: re.Match[str]) -> str:
        written, rest = _divided(found)
        labels = tuple(dict.fromkeys(ord(each) % 0x100 for each in ITEM.findall(written)))
        if len(labels) == 1:
            return f"{ITEM.findall(written)[0]}{rest}"
        if len(lists) <= _LAST - _LIST:
            lists.append((UNKNOWN, UNKNOWN) if _ALTERNATIVES.search(written) else labels)
        return f"{chr(_LIST + len(lists) - 1)}{rest}"

    return _LISTED.sub(character, plain), lists


def _once(found: re.Match[str]) -> str:
    same = ord(found[1]) % 0x100 == ord(found[2]) % 0x100 != UNKNOWN
    return found[1] if same else found[0]


def _divided(found: re.Match[str]) -> tuple[str, str]:
    """Return the list, and the rest of the match.

    The last mention after a comma is not part of the list if it is the subject of a clause, as in
    "B, C is wrong", but not in "none of A, B, C fits".
    """
    text = found.string
    last = _LAST_OF_LIST.search(found[0])
    if (
        last is None
        or not _SUBJECT_OF.match(text, found.end())
        or _QUANTIFIED.search(text[max(0, found.start() - 12) : found.start()])
    ):
        return found[0], ""
    return found[0][: last.start()], last[0]
