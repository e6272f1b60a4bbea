"""Implements checks 7 and 8: texts that must not occur."""

from __future__ import annotations

from visenv.checks.arguments import AnySubstring, AnySubstrings, Substring, Substrings
from visenv.checks.text import clean
from visenv.text.normalize import canonical

# ---------------------------------------------------------------------------- 7: none of several


def contains_none_strict(response: str, arguments: Substrings) -> bool:
    """Check case-insensitively, also inside words, in the canonical form (``don’t``, NFC)."""
    text = canonical(response).casefold()
    return not any(canonical(each).casefold() in text for each in arguments.substrings)


def contains_none_arm(response: str, arguments: AnySubstrings) -> bool:
    """Check case-insensitively, also inside words."""
    text = clean(response).lower()
    return not any(substring.lower() in text for substring in arguments.substrings)


def contains_none_mmif(response: str, arguments: AnySubstrings) -> bool:
    """Check case-sensitively, also inside words."""
    return not any(substring in response for substring in arguments.substrings)


# ---------------------------------------------------------------------------------- 8: not the one


def does_not_contain_strict(response: str, arguments: Substring) -> bool:
    """Check case-insensitively, also inside words, in the canonical form (``don’t``, NFC)."""
    return canonical(arguments.substring).casefold() not in canonical(response).casefold()


def does_not_contain_arm(response: str, arguments: AnySubstring) -> bool:
    """Check case-insensitively, also inside words."""
    return arguments.substring.lower() not in clean(response).lower()


def does_not_contain_mmif(response: str, arguments: AnySubstring) -> bool:
    """Check case-sensitively, also inside words."""
    return arguments.substring not in response
