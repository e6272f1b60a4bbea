"""Creates new names for a world, and names that are nearly the same as another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visenv.worlds.draws import pick

from . import words

_VOWELS = "aeiou"


class Namer:
    """Creates a unique name for each entity of a world, of any kind in `MAKERS`.

    Args:
        rng: Draws the names.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def new(self, kind: str) -> str:
        """Return a name that no other entity has."""
        return self._first_free(lambda: MAKERS[kind](self._rng))

    def near(self, kind: str, name: str) -> str:
        """Return a name that differs from `name` in one letter."""
        return self._first_free(lambda: self._misspelled(kind, name))

    def _misspelled(self, kind: str, name: str) -> str:
        """Return the name with another first vowel in its distinguishing word."""
        before, word, after = _parts(kind, name)
        place = next(index for index, letter in enumerate(word) if letter in _VOWELS)
        vowel = pick(self._rng, _VOWELS.replace(word[place], ""))
        return f"{before}{word[:place]}{vowel}{word[place + 1 :]}{after}"

    def _first_free(self, make: Callable[[], str]) -> str:
        while True:
            name = make()
            if name not in self._taken:
                self._taken.add(name)
                return name


def _parts(kind: str, name: str) -> tuple[str, str, str]:
    """Return the distinguishing word of a name, with the text before and after it."""
    if kind in ("company", "bridge"):
        word, blank, after = name.partition(" ")
        return "", word, blank + after
    before, blank, word = name.rpartition(" ")
    return before + blank, word, ""


def _joined(*parts: tuple[str, ...]) -> Callable[[np.random.Generator], str]:
    return lambda rng: pick(rng, words.ONSETS) + "".join(pick(rng, part) for part in parts)


def _novel(rng: np.random.Generator) -> str:
    title = f"The {pick(rng, words.ADJECTIVES)} {pick(rng, words.NOUNS)}"
    return f"{title} of {_place(rng)}"


_surname = _joined(words.SURNAME_ENDINGS)
_firm = _joined(words.COMPANY_ENDINGS)
_place = _joined(words.PLACE_ENDINGS)
_role = _joined(words.MIDDLES, words.ROLE_ENDINGS)
_crossing = _joined(words.MIDDLES, words.BRIDGE_ENDINGS)

MAKERS: dict[str, Callable[[np.random.Generator], str]] = {
    "person": lambda rng: f"{pick(rng, words.FIRST_NAMES)} {_surname(rng)}",
    "city": _joined(words.CITY_ENDINGS),
    "company": lambda rng: f"{_firm(rng)} {pick(rng, words.TRADES)}",
    "novel": _novel,
    "opera": lambda rng: f"The {pick(rng, words.THEMES)} of {_role(rng)}",
    "bridge": lambda rng: f"{_crossing(rng)} {pick(rng, words.CROSSINGS)} Bridge",
}
