"""Creates the text of pages and signs: four names with a value each, one of which is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled

_FIRST = ("OLD", "NEW", "EAST", "WEST", "HIGH", "LOW", "BLUE", "RED", "SALT", "STAR", "FAR", "LONG")
_SECOND = ("MILL", "PIER", "DOCK", "FARM", "HILL", "LAKE", "PARK", "PORT", "CAVE", "FORT", "INN")
_GIVEN = (
    "ANNA",
    "EMIL",
    "HUGO",
    "NORA",
    "KARL",
    "LENA",
    "PAUL",
    "RUTH",
    "IVAN",
    "ELSA",
    "LEO",
    "UTE",
)
_FAMILY = (
    "BERG",
    "FALK",
    "NOVAK",
    "STERN",
    "HOLT",
    "LIND",
    "PARK",
    "RUIZ",
    "KELLY",
    "BAUER",
    "COX",
)
_LETTERS = "ABCEFHKLMNPRSTUVXYZ"


def _number(rng: np.random.Generator) -> str:
    return str(int(rng.integers(1_000, 10_000)))


def _code(rng: np.random.Generator) -> str:
    return f"{pick(rng, _LETTERS)}{pick(rng, _LETTERS)}{int(rng.integers(100, 1000))}"


def _site(rng: np.random.Generator) -> str:
    return f"{pick(rng, _FIRST)} {pick(rng, _SECOND)}"


def _person(rng: np.random.Generator) -> str:
    return f"{pick(rng, _GIVEN)} {pick(rng, _FAMILY)}"


_VALUES: dict[str, Callable[[np.random.Generator], str]] = {
    **dict.fromkeys(("GATE", "ROOM", "ROUTE", "METER", "LOCKER", "TRACK"), _number),
    **dict.fromkeys(("CODE", "PERMIT", "BATCH", "SERIAL", "PARCEL", "LICENSE"), _code),
    **dict.fromkeys(("DEPOT", "STOP", "BRANCH", "EXIT", "STORE", "YARD"), _site),
    **dict.fromkeys(("KEEPER", "OWNER", "GUIDE", "DRIVER", "TENANT", "MASTER"), _person),
}
NAMES = tuple(_VALUES)

QUESTIONS = {
    "page": "What does the page give for {name}?",
    "signs": "What stands below {name} on its sign?",
}
"""Questions by the kind of picture; ``{name}`` is replaced by the name that is asked about."""

COUNT = 4
"""Number of entries of a picture."""


class PictureEntries(NamedTuple):
    """Holds the names and values of a picture.

    Attributes:
        style: A key of `QUESTIONS`.
        names: Four names, all different.
        values: The value of each, all different.
        asked: The index of the entry that is asked about.
    """

    style: str
    names: tuple[str, ...]
    values: tuple[str, ...]
    asked: int

    @property
    def question(self) -> str:
        """Return the question about one value."""
        return QUESTIONS[self.style].format(name=self.names[self.asked])

    @property
    def answer(self) -> str:
        """Return the value of the entry that is asked about."""
        return self.values[self.asked]


def write_entries(rng: np.random.Generator) -> PictureEntries:
    """Draw the text of a picture; the kinds of the four values are drawn independently."""
    style = pick(rng, list(QUESTIONS))
    names = tuple(shuffled(rng, NAMES)[:COUNT])
    values = _write_values(rng, names)
    return PictureEntries(style, names, values, int(rng.integers(COUNT)))


def rewrite_values(rng: np.random.Generator, entries: PictureEntries) -> PictureEntries:
    """Return the same names and question with other values."""
    return entries._replace(values=_write_values(rng, entries.names))


def _write_values(rng: np.random.Generator, names: Sequence[str]) -> tuple[str, ...]:
    """Draw a value for each name, all different."""
    values: list[str] = []
    for name in names:
        value = _VALUES[name](rng)
        while value in values:
            value = _VALUES[name](rng)
        values.append(value)
    return tuple(values)
