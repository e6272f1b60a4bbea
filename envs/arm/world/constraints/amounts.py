"""Draws bounds with their wording, and numbers that satisfy them or narrowly violate them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from visenv.worlds.draws import pick

from .prose import between

OPEN: Final = 10_000
"""The upper bound of "at least", as in MM-IFEngine's data."""

_EXACT = ("exactly {lower}", "{lower}", "precisely {lower}")
_BETWEEN = ("between {lower} and {upper}", "from {lower} to {upper}", "{lower} to {upper}")
_AT_MOST = ("at most {upper}", "no more than {upper}", "not more than {upper}")
_AT_LEAST = ("at least {lower}", "no fewer than {lower}", "{lower} or more")


class Amount(NamedTuple):
    """Holds inclusive bounds and their wording.

    Attributes:
        lower: The smallest allowed number.
        upper: The largest allowed number; `OPEN` for no bound.
        words: For example ``"between 2 and 4"``.
    """

    lower: int
    upper: int
    words: str

    def of(self, thing: str) -> str:
        """Return the amount with a noun, for example ``"exactly 1 word"`` or ``"2 words"``."""
        counted = self.lower if self.upper in (self.lower, OPEN) else self.upper
        is_single = counted == 1 and not self.words.endswith("or more")
        return f"{self.words} {thing}{'' if is_single else 's'}"

    def bounds(self) -> dict[str, int]:
        """Return the bounds as the arguments of a check."""
        return {"lower_bound": self.lower, "upper_bound": self.upper}

    def bounds_of_times(self) -> dict[str, int]:
        """Return the bounds as the arguments of a check that counts keywords."""
        return {"lower_bound_times": self.lower, "upper_bound_times": self.upper}


class ComparedCount(NamedTuple):
    """Holds a number and its relation to an amount: ``"kept"``, ``"one too many"``, …."""

    number: int
    case: str


def draw_amount(rng: np.random.Generator, lowest: int, highest: int) -> Amount:
    """Return an amount with bounds from `lowest` to `highest`."""
    lower = between(rng, lowest, highest)
    upper = between(rng, lower, highest)
    form = pick(rng, ("exact", "between", "at most", "at least"))
    if form == "exact" or (form == "between" and lower == upper):
        return Amount(lower, lower, pick(rng, _EXACT).format(lower=lower))
    if form == "at most":
        return Amount(0, upper, pick(rng, _AT_MOST).format(upper=upper))
    if form == "at least":
        return Amount(lower, OPEN, pick(rng, _AT_LEAST).format(lower=lower))
    return Amount(lower, upper, pick(rng, _BETWEEN).format(lower=lower, upper=upper))


def draw_count(
    rng: np.random.Generator, amount: Amount, keeps: bool, *, least: int = 1, spare: int = 2
) -> ComparedCount:
    """Return a number that satisfies an amount, or violates it, mostly by one.

    Args:
        rng: The generator.
        amount: The bounds; the lower one of "at least" must be above `least`.
        keeps: Whether the number must satisfy the amount.
        least: The smallest possible number.
        spare: Maximum excess of a number over the lower bound of "at least".
    """
    if keeps:
        upper = amount.upper if amount.upper < OPEN else amount.lower + spare
        return ComparedCount(between(rng, max(amount.lower, least), max(upper, least)), "kept")
    by = 1 if rng.integers(3) else between(rng, 2, 3)
    too_few = amount.upper == OPEN or (amount.lower > least and rng.integers(2))
    if too_few:
        by = min(by, amount.lower - least)
    case = f"{'one' if by == 1 else 'some'} too {'few' if too_few else 'many'}"
    return ComparedCount(amount.lower - by if too_few else amount.upper + by, case)
