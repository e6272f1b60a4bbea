"""Creates texts for checks 17 to 19: the precision of numbers, and the absence of numbers."""

from __future__ import annotations

import numpy as np

from visenv.worlds.draws import pick

from .prose import ConstrainedText, between, finished, mixed, sentences, spread

_SHARES = (
    "About {it} of the guests came by train",
    "The price rose by {it} within a year",
    "In the end {it} agreed with the mayor",
    "Only {it} of the windows were open",
)
_NUMBERS = (
    "The parcel weighed {it} kilograms",
    "The bill came to ${it} for everyone",
    "They walked {it} miles that day",
    "The tower had sunk by {it} metres",
)
_COUNTS = (
    "There were {it} guests in the hall",
    "The clerk had {it} keys",
    "We counted {it} boats on the water",
)
_NUMBER_WORDS = ("two", "three", "seven", "eleven", "twenty", "a dozen", "ninety", "a hundred")

_SHARE_PRECISION = (
    "Every percentage must have {digits} after the decimal point.",
    "Write all percentages with {digits} after the decimal point.",
    "Wherever a % sign is used, the number before it needs {digits} after the point.",
)
_NUMBER_PRECISION = (
    "Every number must have {digits} after the decimal point.",
    "Write all numbers with {digits} after the decimal point.",
    "Whatever number the text holds, it needs {digits} after the decimal point.",
)
_NO_NUMBER = (
    "The response must not contain Arabic numerals.",
    "Do not write any number in digits.",
    "Numbers may only be written out in words, never with the digits 0 to 9.",
)


def percentage_precision(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create percentages with a number of decimals; a wrong one has one more or less."""
    precision = between(rng, 0, 3)
    values, case = _values(rng, precision, keeps, 100)
    blank = pick(rng, ("", "", " "))
    new = [finished(rng, pick(rng, _SHARES).format(it=f"{value}{blank}%")) for value in values]
    if rng.integers(2):
        new.append(finished(rng, pick(rng, _COUNTS).format(it=between(rng, 2, 90))))
        case += ", with another number"
    constraint = pick(rng, _SHARE_PRECISION).format(digits=_digits(precision))
    return ConstrainedText(_among(rng, new), constraint, {"precision": precision}, case)


def number_precision(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create numbers with a number of decimals; a wrong one has one more or less."""
    precision = between(rng, 1, 3)
    values, case = _values(rng, precision, keeps, 5000)
    new = [finished(rng, pick(rng, _NUMBERS).format(it=value)) for value in values]
    constraint = pick(rng, _NUMBER_PRECISION).format(digits=_digits(precision))
    return ConstrainedText(_among(rng, new), constraint, {"precision": precision}, case)


def has_no_number(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with numbers in words only; a wrong text has one in digits."""
    written = [pick(rng, _NUMBER_WORDS) for _ in range(between(rng, 1, 3))]
    case = "kept"
    if not keeps:
        place = int(rng.integers(len(written)))
        written[place] = str(between(rng, 2, 999))
        case = f"one of {len(written)} in digits"
    new = [finished(rng, pick(rng, _COUNTS).format(it=each)) for each in written]
    return ConstrainedText(_among(rng, new), pick(rng, _NO_NUMBER), {}, case)


def _values(
    rng: np.random.Generator, precision: int, keeps: bool, below: int
) -> tuple[list[str], str]:
    """Return numbers as text and a description, such as ``"one of 3 a digit too long"``.

    If `keeps` is False, one number has a decimal more or less than `precision`.
    """
    decimals = [precision] * between(rng, 2, 4)
    case = "kept"
    if not keeps:
        more = precision == 0 or bool(rng.integers(2))
        decimals[int(rng.integers(len(decimals)))] += 1 if more else -1
        case = f"one of {len(decimals)} a digit too {'long' if more else 'short'}"
    return [f"{rng.random() * below:,.{places}f}" for places in decimals], case


def _digits(number: int) -> str:
    return "no digit" if number == 0 else f"exactly {number} digit{'' if number == 1 else 's'}"


def _among(rng: np.random.Generator, new: list[str]) -> str:
    return spread(rng, mixed(rng, sentences(rng, between(rng, 1, 3)), new))
