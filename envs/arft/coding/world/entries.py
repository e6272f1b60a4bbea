"""Creates the text of pictures: four rows with one or two values each, and a question about one.

Each layout has several wordings of a question. Most ask for a value of a row; some ask for the row
with a value, the longest bar or the total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import drawn_scene, pick, shuffled

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

COUNT = 4
"""Number of rows of a picture."""

TOTAL = "TOTAL"
"""The last row of a receipt."""

Values = tuple[str, ...]


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


def _any(rng: np.random.Generator, values: Values) -> int:
    return int(rng.integers(COUNT))


def _item(rng: np.random.Generator, values: Values) -> int:
    return int(rng.integers(COUNT - 1))


def _total(rng: np.random.Generator, values: Values) -> int:
    return COUNT - 1


def _longest(rng: np.random.Generator, values: Values) -> int:
    return int(np.argmax([int(value) for value in values]))


def _shortest(rng: np.random.Generator, values: Values) -> int:
    return int(np.argmin([int(value) for value in values]))


class Wording(NamedTuple):
    """Describes a question.

    Attributes:
        text: The question; ``{name}``, ``{column}`` and ``{value}`` are replaced.
        row: Draws the row that is asked about, given the values of the column.
        asks_name: Whether the answer is the name of the row instead of its value.
        column: The only column that the question is about; ``""`` for any.
    """

    text: str
    row: Callable[[np.random.Generator, Values], int] = _any
    asks_name: bool = False
    column: str = ""


class TextLayout(NamedTuple):
    """Describes the text of a layout.

    Attributes:
        wordings: The questions.
        names: The names of rows, of which four are drawn; empty for names of places.
        columns: The columns of values, of which `shown` are drawn; none if the kind of a value
            depends on the name of its row.
        shown: The number of columns in a picture.
    """

    wordings: Sequence[Wording]
    names: Sequence[str] = ()
    columns: Sequence[str] = ()
    shown: int = 1


LAYOUTS: Mapping[str, TextLayout] = {
    "page": TextLayout(
        (
            Wording("What does the page give for {name}?"),
            Wording("Which entry stands beside {name} in the notice?"),
            Wording("What is listed under {name} on the page?"),
        ),
        names=NOTICES,
    ),
    "signs": TextLayout(
        (
            Wording("What stands below {name} on its sign?"),
            Wording("What does the sign with the word {name} say?"),
            Wording("Which text is on the {name} sign?"),
        ),
        names=NOTICES,
    ),
    "table": TextLayout(
        (
            Wording("What does the table give for {column} of {name}?"),
            Wording("Which {column} does {name} have in the table?"),
            Wording("Look up {name}: what stands in the column {column}?"),
            Wording("Which row of the table has {column} {value}?", asks_name=True),
        ),
        names=PARTS,
        columns=COLUMNS,
        shown=2,
    ),
    "chart": TextLayout(
        (
            Wording("Which value does the chart give for {name}?"),
            Wording("Which number stands at the bar of {name}?"),
            Wording("Which bar of the chart is the longest?", _longest, True),
            Wording("Which bar of the chart is the shortest?", _shortest, True),
            Wording("Which bar of the chart has the value {value}?", asks_name=True),
        ),
        names=GOODS,
        columns=("VALUE",),
    ),
    "receipt": TextLayout(
        (
            Wording("What does {name} cost on the receipt?", _item),
            Wording("Which price does the receipt list for {name}?", _item),
            Wording("What is the total of the receipt?", _total),
            Wording("What on the receipt costs {value}?", _item, True),
        ),
        names=GROCERIES,
        columns=("PRICE",),
    ),
    "label": TextLayout(
        (
            Wording("What does the label say under {name}?"),
            Wording("Which {name} is printed on the label?"),
            Wording("What is in the field {name} of the label?"),
        ),
        names=LABELED,
    ),
    "board": TextLayout(
        (
            Wording("When does the train to {name} leave?", column="TIME"),
            Wording("Which departure time does the board show for {name}?", column="TIME"),
            Wording("From which platform does the train to {name} leave?", column="PLATFORM"),
            Wording("Where does the train at {value} go?", asks_name=True, column="TIME"),
        ),
        columns=("TIME", "PLATFORM"),
        shown=2,
    ),
    "map": TextLayout(
        (
            Wording("Which height does the map give for {name}?"),
            Wording("How high is {name} on the map, in meters?"),
            Wording("Which place on the map is {value} meters high?", asks_name=True),
        ),
        columns=("HEIGHT",),
    ),
}
"""The layouts by name."""


class PictureEntries(NamedTuple):
    """Holds the text of a picture.

    Attributes:
        layout: A key of `LAYOUTS`.
        names: The four names of rows, all different.
        columns: The names of the columns; ``("",)`` if the kind of a value depends on its row.
        values: The values of each column, four in the order of `names`, all different.
        wording: The question.
        row: The row that is asked about.
        column: The column that is asked about.
    """

    layout: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[Values, ...]
    wording: Wording
    row: int
    column: int

    @property
    def question(self) -> str:
        """Return the question."""
        return self.wording.text.format(
            name=self.names[self.row],
            column=self.columns[self.column],
            value=self.values[self.column][self.row],
        )

    @property
    def options(self) -> Values:
        """Return all possible answers: the names, or the values of the column."""
        return self.names if self.wording.asks_name else self.values[self.column]

    @property
    def answer(self) -> str:
        """Return the name or the value that is asked for."""
        return self.options[self.row]

    def is_asked(self, row: int, column: int | None) -> bool:
        """Return whether a value, or with None for the column the name of a row, is the answer."""
        asked = None if self.wording.asks_name else self.column
        return (row, column) == (self.row, asked)


def write_entries(rng: np.random.Generator, held_out: bool) -> PictureEntries:
    """Draw the text of a picture, which is held out from training or not."""
    layout = pick(rng, list(LAYOUTS))
    return drawn_scene(lambda: _written(rng, layout), held_out, key=_drawn_text)


def rewrite_entries(
    rng: np.random.Generator, entries: PictureEntries, held_out: bool
) -> PictureEntries:
    """Return the same question about a picture with other answers."""

    def rewritten() -> PictureEntries:
        if entries.wording.asks_name:
            return entries._replace(names=_names(rng, entries.layout))
        values = tuple(_column(rng, entries.names, column) for column in entries.columns)
        return entries._replace(values=values)

    return drawn_scene(rewritten, held_out, key=_drawn_text)


def _drawn_text(entries: PictureEntries) -> object:
    """Return the layout and the texts of a picture, which its question does not change."""
    return entries.layout, entries.names, entries.columns, entries.values


def _written(rng: np.random.Generator, name: str) -> PictureEntries:
    layout = LAYOUTS[name]
    wording = pick(rng, layout.wordings)
    names = _names(rng, name)
    columns = tuple(shuffled(rng, layout.columns)[: layout.shown]) or ("",)
    values = tuple(_column(rng, names, column) for column in columns)
    asked = columns.index(wording.column) if wording.column else int(rng.integers(len(columns)))
    row = wording.row(rng, values[asked])
    return PictureEntries(name, names, columns, values, wording, row, asked)


def _names(rng: np.random.Generator, name: str) -> Values:
    """Draw the names of the rows, all different; the last one of a receipt is the total."""
    listed = LAYOUTS[name].names
    if not listed:
        return _different(rng, [site] * COUNT)
    names = shuffled(rng, listed)[:COUNT]
    return (*names[:-1], TOTAL) if name == "receipt" else tuple(names)


def _column(rng: np.random.Generator, names: Sequence[str], column: str) -> Values:
    """Draw the values of a column, all different."""
    values = _different(rng, [VALUES[column or name] for name in names])
    if TOTAL not in names:
        return values
    cents = sum(int(price.replace(".", "")) for price in values[:-1])
    return *values[:-1], priced(cents)


def _different(
    rng: np.random.Generator, draws: Sequence[Callable[[np.random.Generator], str]]
) -> Values:
    """Call each function until all results differ."""
    values: list[str] = []
    for draw in draws:
        value = draw(rng)
        while value in values:
            value = draw(rng)
        values.append(value)
    return tuple(values)
