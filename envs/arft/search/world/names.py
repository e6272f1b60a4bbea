"""Creates names for a world, and names that are nearly the same, from lists of fictional words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visenv.worlds.draws import pick

COLORS = {
    "red": (200, 30, 36),
    "orange": (245, 140, 20),
    "yellow": (250, 215, 50),
    "green": (30, 130, 60),
    "blue": (28, 70, 190),
    "purple": (125, 45, 150),
    "white": (246, 246, 242),
    "black": (24, 24, 28),
}

# fmt: off
CHARGES = ("star", "ring", "cross", "tower", "diamond", "crescent", "tree", "arrow")

HEADGEAR = ("hat", "beret", "crown", "hood")

FIRST_NAMES = (
    "Adela", "Bruno", "Celia", "Dario", "Edda", "Fabian", "Greta", "Hugo", "Irma", "Jasper",
    "Karla", "Linus", "Mira", "Nils", "Odette", "Paul", "Rosa", "Stefan", "Tilda", "Viktor",
)

ONSETS = (
    "Bar", "Bel", "Bor", "Cal", "Cor", "Dal", "Dor", "Fal", "Fen", "Gar", "Gor", "Hal", "Hol",
    "Kar", "Kel", "Kor", "Lam", "Lor", "Mar", "Mel", "Nar", "Nor", "Pal", "Pel", "Ral", "Ron",
    "Sal", "Sor", "Tal", "Tol", "Var", "Vel", "Vor", "Wal", "Wen", "Zel",
)

SURNAME_ENDINGS = (
    "dan", "ker", "lund", "mann", "mont", "nick", "quist", "rick", "sen", "stad", "ter", "ton",
    "vall", "wick",
)

CITY_ENDINGS = (
    "bach", "berg", "burg", "dorf", "field", "ford", "gard", "haven", "holm", "mouth", "stead",
    "thorpe",
)

COMPANY_ENDINGS = ("ax", "ico", "ona", "ora", "ux", "vex", "yx", "zo")

TRADES = ("Works", "Mills", "Foundry", "Press", "Yards", "Forge")

MIDDLES = ("a", "an", "ar", "e", "el", "en", "er", "i", "in", "o", "or", "u")

PLACE_ENDINGS = (
    "combe", "fell", "firth", "garth", "hythe", "lea", "mere", "moss", "shaw", "strand", "tarn",
    "wold",
)

THEMES = (
    "Bells", "Crown", "Dance", "Dream", "Exile", "Feast", "Flight", "Journey", "Judgement", "Oath",
    "Pardon", "Promise", "Return", "Ring", "Secret", "Silence", "Songs", "Sorrow", "Tears",
    "Throne", "Trial", "Veil", "Vow", "Wedding",
)

CROSSINGS = (
    "Abbey", "Castle", "Chapel", "Copper", "Cross", "Eagle", "Ferry", "Garden", "Harbour", "Hill",
    "Iron", "King", "Lower", "Market", "Mill", "North", "Old", "Queen", "Rope", "Salt", "South",
    "Tower", "Upper", "West",
)

ROLE_ENDINGS = ("amie", "andra", "ella", "icia", "inde", "ione", "osine", "ulla")

BRIDGE_ENDINGS = ("beck", "brook", "dale", "gate", "mead", "moor", "ridge", "well")

ADJECTIVES = (
    "Amber", "Broken", "Distant", "Frozen", "Gentle", "Hidden", "Hollow", "Iron", "Lost", "Narrow",
    "Quiet", "Restless", "Silver", "Sunken", "Velvet", "Wooden",
)

NOUNS = (
    "Anchor", "Candle", "Clock", "Garden", "Harbour", "Island", "Kitchen", "Ladder", "Lantern",
    "Letter", "Meadow", "Mirror", "Orchard", "Station", "Voyage", "Winter",
)

RIVERS = (
    "Aune", "Bracca", "Cinder", "Dwyll", "Esker", "Fyne", "Glimmer", "Hesper", "Ister", "Jorra",
    "Kyle", "Lunde", "Morwen", "Nethe", "Orrin", "Pell", "Quill", "Ravva", "Silth", "Tarn",
    "Ulver", "Vesk", "Wharn", "Yarra",
)

PROFESSIONS = (
    "a baker", "a botanist", "a cooper", "a dentist", "an engraver", "a glazier", "a judge",
    "a librarian", "a locksmith", "a midwife", "a notary", "a pilot", "a potter", "a surveyor",
    "a tailor", "a watchmaker",
)

INSTRUMENTS = (
    "bagpipes", "banjo", "bassoon", "cello", "clarinet", "flute", "harmonica", "harp", "lute",
    "mandolin", "oboe", "organ", "trombone", "trumpet", "viola", "zither",
)

PRODUCTS = (
    "barometers", "bicycles", "buttons", "chandeliers", "compasses", "corkscrews", "gloves",
    "kettles", "padlocks", "pencils", "saddles", "scissors", "spectacles", "stoves", "umbrellas",
    "violins",
)

MATERIALS = ("basalt", "brick", "concrete", "granite", "limestone", "marble", "oak", "steel")

REMARKS = (
    "A fire in {year} did great damage to the archive.",
    "A stamp of {year} is now rare.",
    "Some {number} letters are kept in the archive.",
    "An exhibition in {year} drew {number} visitors.",
    "A society of friends with {number} members was formed in {year}.",
    "Much that was written before {year} is wrong.",
)

_VOWELS = "aeiou"

# fmt: on


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
    return lambda rng: pick(rng, ONSETS) + "".join(pick(rng, part) for part in parts)


def _novel(rng: np.random.Generator) -> str:
    title = f"The {pick(rng, ADJECTIVES)} {pick(rng, NOUNS)}"
    return f"{title} of {_place(rng)}"


_surname = _joined(SURNAME_ENDINGS)

_firm = _joined(COMPANY_ENDINGS)

_place = _joined(PLACE_ENDINGS)

_role = _joined(MIDDLES, ROLE_ENDINGS)

_crossing = _joined(MIDDLES, BRIDGE_ENDINGS)

MAKERS: dict[str, Callable[[np.random.Generator], str]] = {
    "person": lambda rng: f"{pick(rng, FIRST_NAMES)} {_surname(rng)}",
    "city": _joined(CITY_ENDINGS),
    "company": lambda rng: f"{_firm(rng)} {pick(rng, TRADES)}",
    "novel": _novel,
    "opera": lambda rng: f"The {pick(rng, THEMES)} of {_role(rng)}",
    "bridge": lambda rng: f"{_crossing(rng)} {pick(rng, CROSSINGS)} Bridge",
}
