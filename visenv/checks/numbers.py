"""Implements checks 17 to 19: the precision of numbers, and the absence of numbers.

A number of ``strict`` has digits, groups of thousands, a decimal part and an exponent. It must not
follow a letter or a letter and a hyphen (A4, GPT-4, v1.5) or be part of a chain of points (1.2.3),
and a number without decimals must not be followed by a letter (3rd, 5G; but 3.5kg is allowed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from visenv.checks.arguments import AnyPrecision, NoArguments, Precision
from visenv.checks.text import without_list_markers

# Every pattern here reads a run of digits a bounded number of times: a match starts at the start of
# the run and takes the whole run (possessive quantifiers). Patterns that begin with a digit are
# several times as fast as patterns that begin with a condition, so some conditions are checked
# after the first character.
_DIGITS = re.compile(r"\d++")
_NUMBER = re.compile(
    r"""(?<!\w) (?<!\d\.) (?<![^\W\d_]-)
    (?: (?: \d++(?:,\d{3}(?!\d)){0,9}+ | (?<!\.) ) \.(?P<decimals>\d++) (?:[eE][+-]?\d++)?+
      | \d++(?:,\d{3}(?!\d)){0,9}+ (?:[eE][+-]?\d++)?+ (?!\w)
    ) (?!\.?\d)""",
    re.VERBOSE,
)
_PERCENT = re.compile(r"[^\S\n]*+[%％]")

_DECIMALS_ARM = re.compile(r"\d(?<!\d\d)\d*+\.(\d++)")
_PERCENTAGES_ARM = re.compile(r"\d(?<!\d\d)\d*+\.(\d++)%")
_INTEGER_ARM = re.compile(r"\d(?<!\w\d)\d*+(?!\w)")

_PERCENTAGES_MMIF = re.compile(r"\d(?<!\d\d)\d*+(?:\.(\d++))?\s*+%")
_NUMBERS_MMIF = re.compile(
    r"""[\d.] (?<!\w.)
    (?: (?<=\d) (?: \d{0,2}(?:,\d{3})* | \d* ) (?:\.(\d+))? | (?<=\.)(\d+) )
    (?:[eE][+-]?\d+)? %? (?!\w)""",
    re.VERBOSE,
)
_NUMBER_MMIF = re.compile(r"\d(?<![.\w]\d)\d*+(?:\.\d++)?+(?:%|[eE][+-]?\d++(?![.\w])|(?![.\w]))")

# -------------------------------------------------------------------- 17: precision of percentages


def percentage_precision_strict(response: str, arguments: Precision) -> bool:
    """Check all numbers before ``%``, with or without blanks between them."""
    found = (number for number in _numbers(response) if _PERCENT.match(response, number.end()))
    return _have((number["decimals"] or "" for number in found), arguments.precision)


def percentage_precision_arm(response: str, arguments: AnyPrecision) -> bool:
    """Check only numbers with decimals directly before ``%``; other numbers pass."""
    return _have(_PERCENTAGES_ARM.findall(response), arguments.precision)


def percentage_precision_mmif(response: str, arguments: AnyPrecision) -> bool:
    """Check percentages; whole numbers always fail, because the public code cannot parse them."""
    found = _PERCENTAGES_MMIF.findall(response)
    return all(found) and _have(found, arguments.precision)


# ------------------------------------------------------------------------ 18: precision of numbers


def number_precision_strict(response: str, arguments: Precision) -> bool:
    """Check separate numbers; the marker of a list item is not a number."""
    found = _numbers(without_list_markers(response))
    return _have((number["decimals"] or "" for number in found), arguments.precision)


def number_precision_arm(response: str, arguments: AnyPrecision) -> bool:
    """Check numbers with decimals anywhere; other numbers pass."""
    return _have(_DECIMALS_ARM.findall(response), arguments.precision)


def number_precision_mmif(response: str, arguments: AnyPrecision) -> bool:
    """Check numbers without an adjacent letter; the 1 in ``1.5kg`` is such a number."""
    return _have(map("".join, _NUMBERS_MMIF.findall(response)), arguments.precision)


# ----------------------------------------------------------------------------------- 19: no number


def has_no_number_strict(response: str, arguments: NoArguments) -> bool:
    """Check that there is no separate number."""
    return next(_numbers(response), None) is None


def has_no_number_arm(response: str, arguments: NoArguments) -> bool:
    """Check that there are no digits between word boundaries."""
    return _INTEGER_ARM.search(response) is None


def has_no_number_mmif(response: str, arguments: NoArguments) -> bool:
    """Check that there are no digits without an adjacent letter or point."""
    return _NUMBER_MMIF.search(response) is None


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """Yield the numbers of ``strict`` in order; their group ``decimals`` may be None."""
    end = 0
    for digits in _DIGITS.finditer(text):
        start = digits.start()
        if start >= end:
            fraction = _NUMBER.match(text, start - 1) if text[start - 1 : start] == "." else None
            number = fraction or _NUMBER.match(text, start)
            if number:
                end = number.end()
                yield number


def _have(decimals: Iterable[str], precision: int) -> bool:
    return all(len(digits) == precision for digits in decimals)
