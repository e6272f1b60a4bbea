"""Implements checks 15 and 16: the number of mentions of each keyword, and of all together."""

from __future__ import annotations

import re
from collections.abc import Callable

from visenv.checks.arguments import AnyKeywords, Keywords
from visenv.checks.text import clean
from visenv.text.normalize import canonical

# ------------------------------------------------------------------------------ 15: each keyword


def each_keyword_strict(response: str, arguments: Keywords) -> bool:
    """Check each keyword separately, counted by `mentions`."""
    text = _folded(response)
    return all(_within(mentions(text, each), arguments) for each in _distinct(arguments))


def each_keyword_arm(response: str, arguments: AnyKeywords) -> bool:
    """Check each keyword separately, counted by `mentions_arm`."""
    text = clean(response)
    return all(_within(mentions_arm(text, each), arguments) for each in arguments.keywords)


def each_keyword_mmif(response: str, arguments: AnyKeywords) -> bool:
    """Check each keyword separately, counted by `mentions_mmif`."""
    text = clean(response).lower()
    return all(_within(mentions_mmif(text, each), arguments) for each in arguments.keywords)


# ---------------------------------------------------------------------------- 16: all together


def total_keywords_strict(response: str, arguments: Keywords) -> bool:
    """Check the sum; a keyword that is listed twice counts once."""
    text = _folded(response)
    return _within(sum(mentions(text, each) for each in _distinct(arguments)), arguments)


def total_keywords_arm(response: str, arguments: AnyKeywords) -> bool:
    """Check the sum; a keyword that is listed twice counts twice."""
    text = clean(response)
    return _within(sum(mentions_arm(text, each) for each in arguments.keywords), arguments)


def total_keywords_mmif(response: str, arguments: AnyKeywords) -> bool:
    """Check the sum; a keyword that is listed twice counts twice."""
    text = clean(response).lower()
    return _within(sum(mentions_mmif(text, each) for each in arguments.keywords), arguments)


# ------------------------------------------------------------------------------------ counting


def mentions(folded_text: str, folded_keyword: str) -> int:
    """Count occurrences of a keyword without an adjacent letter or digit (``strict``)."""
    return _count(folded_text, folded_keyword, _apart)


def mentions_arm(text: str, keyword: str) -> int:
    """Return ARM-Thinker's count: between word boundaries, or anywhere for a hashtag."""
    hashtag = keyword.startswith("#")
    if text.isascii() and keyword.isascii():
        # Comparing in lower case is equivalent to ignoring case, and takes a fifth of the time.
        lower = text.lower()
        return lower.count(keyword.lower()) if hashtag else mentions_mmif(lower, keyword)
    pattern = re.escape(keyword) if hashtag else rf"\b{re.escape(keyword)}\b"
    return len(re.findall(pattern, text, re.IGNORECASE))


def mentions_mmif(lower_text: str, keyword: str) -> int:
    """Return MM-IFEngine's count, at word boundaries: ``#cat`` only after a letter or digit."""
    if not keyword:
        return len(re.findall(r"\b", lower_text))  # the matches of the public pattern in this case
    wanted = keyword.lower()
    first, last = _is_word(wanted[0]), _is_word(wanted[-1])
    return _count(
        lower_text,
        wanted,
        lambda before, after: _is_word(before) != first and _is_word(after) != last,
    )


def _count(text: str, keyword: str, stands: Callable[[str, str], bool]) -> int:
    """Count the occurrences of a keyword for which `stands` is true of the adjacent characters."""
    count, start = 0, text.find(keyword)
    while start >= 0:
        end = start + len(keyword)
        counts = stands(text[start - 1 : start], text[end : end + 1])
        count += counts
        start = text.find(keyword, end if counts else start + 1)
    return count


def _apart(before: str, after: str) -> bool:
    return not (before.isalnum() or after.isalnum())


def _is_word(character: str) -> bool:
    r"""Return whether the character matches ``\\w``; False at an end of the text."""
    return character.isalnum() or character == "_"


def _folded(text: str) -> str:
    """Convert to the canonical form in lower case with single blanks.

    A phrase may span two lines, and ``don’t`` is a mention of ``don't``.
    """
    return " ".join(canonical(text).casefold().split())


def _distinct(arguments: Keywords) -> dict[str, None]:
    return dict.fromkeys(map(_folded, arguments.keywords))


def _within(count: int, arguments: AnyKeywords) -> bool:
    return arguments.lower_bound_times <= count <= arguments.upper_bound_times
