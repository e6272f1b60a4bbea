"""Contains the words of pictures, and draws values such as numbers, codes, prices and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from visenv.worlds.draws import pick

# fmt: off
_FIRST = (
    "OLD", "NEW", "EAST", "WEST", "HIGH", "LOW", "BLUE", "RED", "SALT", "STAR", "FAR", "LONG",
    "IRON", "MOSS", "PINE", "WOLF", "SNOW", "ELM",
)
_SECOND = (
    "MILL", "PIER", "DOCK", "FARM", "HILL", "LAKE", "PARK", "PORT", "CAVE", "FORT", "INN",
    "WELL", "ROCK", "FORD", "BAY", "WOOD", "GATE",
)
_GIVEN = (
    "ANNA", "EMIL", "HUGO", "NORA", "KARL", "LENA", "PAUL", "RUTH", "IVAN", "ELSA", "LEO", "UTE",
)
_FAMILY = (
    "BERG", "FALK", "NOVAK", "STERN", "HOLT", "LIND", "PARK", "RUIZ", "KELLY", "BAUER", "COX",
)
PARTS = (
    "PUMP", "DRILL", "LAMP", "VALVE", "CABLE", "MOTOR", "HOSE", "FUSE", "BOLT", "GEAR", "LENS",
    "PIPE", "SAW", "TENT", "ROPE", "WHEEL", "CLOCK", "RADIO", "FAN", "BELT", "GLUE", "TAPE",
    "HINGE", "LOCK",
)
"""Rows of tables."""
GROCERIES = (
    "RICE", "MILK", "BREAD", "EGGS", "SALT", "SUGAR", "TEA", "COFFEE", "HONEY", "JAM", "APPLES",
    "ONIONS", "BEANS", "CHEESE", "BUTTER", "FLOUR", "OIL", "SOAP", "PASTA", "OLIVES", "LEMONS",
    "NUTS", "WATER", "PEPPER",
)
"""Items of receipts."""
GOODS = (
    "CORN", "OATS", "RYE", "RICE", "HOPS", "FLAX", "SOY", "PEAS", "WOOD", "COAL", "WIND", "WOOL",
    "SILK", "SALT", "TEA", "IRON", "TIN", "GOLD", "ZINC", "OIL", "GAS", "NUTS", "HAY", "JUTE",
)
"""Bars of charts."""
# fmt: on
_LETTERS = "ABCEFHKLMNPRSTUVXYZ"


def _digits(count: int) -> Callable[[np.random.Generator], str]:
    """Return a function that draws a number of so many digits, the first one not 0."""
    return lambda rng: str(int(rng.integers(10 ** (count - 1), 10**count)))


def _code(rng: np.random.Generator) -> str:
    return f"{pick(rng, _LETTERS)}{pick(rng, _LETTERS)}{int(rng.integers(100, 1000))}"


def _short_code(rng: np.random.Generator) -> str:
    return f"{pick(rng, _LETTERS)}{int(rng.integers(10, 100))}"


def _person(rng: np.random.Generator) -> str:
    return f"{pick(rng, _GIVEN)} {pick(rng, _FAMILY)}"


def _time(rng: np.random.Generator) -> str:
    return f"{int(rng.integers(10, 24))}:{int(rng.integers(60)):02}"


def _price(rng: np.random.Generator) -> str:
    return priced(int(rng.integers(1_000, 10_000)))


def priced(cents: int) -> str:
    """Return a price, for example ``"12.50"``."""
    return f"{cents // 100}.{cents % 100:02}"


def site(rng: np.random.Generator) -> str:
    """Draw the name of a place, for example ``"EAST MILL"``."""
    return f"{pick(rng, _FIRST)} {pick(rng, _SECOND)}"


_NOTICED: Mapping[str, Callable[[np.random.Generator], str]] = {
    **dict.fromkeys(("GATE", "ROOM", "ROUTE", "METER", "LOCKER", "TRACK"), _digits(4)),
    **dict.fromkeys(("CODE", "PERMIT", "BATCH", "SERIAL", "PARCEL", "LICENSE"), _code),
    **dict.fromkeys(("DEPOT", "STOP", "BRANCH", "EXIT", "STORE", "YARD"), site),
    **dict.fromkeys(("KEEPER", "OWNER", "GUIDE", "DRIVER", "TENANT", "MASTER"), _person),
}
NOTICES = tuple(_NOTICED)
"""Names with a value on pages and signs."""

VALUES: Mapping[str, Callable[[np.random.Generator], str]] = {
    **_NOTICED,
    "STOCK": _digits(4),
    **dict.fromkeys(("SENDER", "RECEIVER"), _person),
    **dict.fromkeys(("ORIGIN", "TARGET"), site),
    **dict.fromkeys(("HEIGHT", "VALUE", "WEIGHT"), _digits(3)),
    **dict.fromkeys(("SHELF", "PLATFORM"), _short_code),
    **dict.fromkeys(("PART", "ORDER", "MODEL"), _code),
    "TIME": _time,
    "PRICE": _price,
}
"""Functions that draw values, by the name or the column that they belong to."""

LABELED = (
    "SENDER", "RECEIVER", "ORIGIN", "TARGET", "ORDER", "WEIGHT", "BATCH", "MODEL", "SHELF", "STORE",
)  # fmt: skip
"""Names with a value on labels."""

COLUMNS = ("STOCK", "PRICE", "SHELF", "PART", "WEIGHT")
"""Columns of tables."""
