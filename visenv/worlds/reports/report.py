"""Makes the content of a report from its seed; `drawing` draws the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled

PAGES = (4, 24)
"""Fewest and most pages."""

STEP = 5
"""Distance between two grid lines of a chart; every value in a chart is on a grid line."""

_BOARD = 3
"""Names on the cover."""

_STREAM = 0x4E90
"""Separates the random stream of reports from other streams of the same seed."""


class SectionTopic(NamedTuple):
    """Describes the topic of a section: a quantity, and its unit."""

    title: str
    unit: str

    @property
    def phrase(self) -> str:
        """Return the title as part of a sentence."""
        return self.title[0].lower() + self.title[1:]


# fmt: off
TOPICS = tuple(SectionTopic(*pair) for pair in (
    ("Electricity use", "MWh"), ("Passenger traffic", "thousand passengers"),
    ("Freight tonnage", "thousand tonnes"), ("Water consumption", "megalitres"),
    ("Training time", "hours"), ("Repair cost", "thousand crowns"),
    ("Rental income", "thousand crowns"), ("Ticket revenue", "thousand crowns"),
    ("Parcel delivery", "thousand parcels"), ("Sick leave", "days"), ("Overtime", "hours"),
    ("Diesel burn", "kilolitres"), ("Waste output", "tonnes"),
    ("Insurance premium", "thousand crowns"), ("Advertising expense", "thousand crowns"),
    ("Warehouse space", "square metres"), ("Timber yield", "cubic metres"),
    ("Fish landing", "tonnes"), ("Grain handling", "tonnes"), ("Ice production", "tonnes"),
    ("Steel purchase", "tonnes"), ("Paint stock", "litres"),
    ("Dredging work", "thousand cubic metres"), ("Crane duty", "hours"),
    ("Catering supply", "thousand meals"), ("Customs throughput", "declarations"),
    ("Laundry load", "tonnes"), ("Rope manufacture", "kilometres"), ("Snow clearance", "hours"),
    ("Lighthouse upkeep", "thousand crowns"), ("Cable laying", "kilometres"),
    ("Nursery planting", "trees"),
))
"""No two topics have a word in common, so that a heading finds its page."""

SITES = (
    "Harrowmere", "Tansley", "Quillport", "Vessby", "Oakenfold", "Marlhaven", "Dunstrom",
    "Peverel", "Skarholm", "Lindwick", "Brackwater", "Ysgard", "Corvale", "Fenmouth", "Aldersund",
    "Tirrell", "Wexholt", "Norvik", "Ashby Quay", "Grimsdal", "Hollowell", "Juniper Bay",
    "Kestrel Point", "Eldham",
)

FIRST_NAMES = (
    "Ottilie", "Bram", "Sunniva", "Casper", "Maren", "Teodor", "Ingrith", "Lucan", "Perpetua",
    "Alaric", "Wilhelmine", "Jorun", "Cosmo", "Elspeth", "Rurik", "Damaris", "Florian", "Hedda",
    "Ivo", "Katrin",
)

LAST_NAMES = (
    "Brandvold", "Achterberg", "Sollis", "Quennell", "Tharsen", "Medway", "Ostrander", "Pell",
    "Rosvall", "Underhay", "Vantongeren", "Wystan", "Zellweger", "Fairlamb", "Gorringe",
    "Hallström", "Ingoldsby", "Kjeldsen", "Lorrimer", "Nightingale",
)

TRADES = ("Harbours", "Ferries", "Lines", "Navigation", "Docks", "Shipping", "Terminals", "Towage")

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)

STATUSES = ("finished", "delayed", "planned", "stopped")

WORKS = (
    "Quay wall", "Roof of shed 4", "North gate", "Pump house", "Signal mast", "Slipway",
    "Boiler room", "Canteen kitchen", "Fence, east side", "Weighbridge", "Rail spur",
    "Fire alarm", "Sewer main", "Drainage ditch", "Control cabin", "Loading ramp",
    "Bicycle shelter", "Staff lockers", "Floodlights", "Mooring posts",
)

ACCENTS = ("#1f4e79", "#7a2e2e", "#2d6a4f", "#5b3a87", "#8a5a00", "#175e68", "#6b2147", "#3d4a5c")

OPENING_SENTENCES = (
    "This section sets out how {company} fared with regard to {topic}.",
    "For {company}, {topic} remains one of the matters that the board looks at every quarter.",
    "The figures on {topic} were put together by the sites themselves and checked at head office.",
    "Few things say as much about the state of the sites as {topic} does.",
    "What is reported here on {topic} follows the same rules as in the years before.",
)

FILLER_SENTENCES = (
    "Conditions differed from place to place, and the weather played its part.",
    "The board thanks everybody who helped to collect the numbers.",
    "Two methods of counting were compared and led to the same result.",
    "Where a site reported late, its figures were added before this report closed.",
    "Rounding was done only at the very end, so that sums may be off by one.",
    "An independent office went through the records and found them in good order.",
    "The outlook is cautious, as orders from abroad are hard to foresee.",
    "Suppliers were asked to bring forward their deliveries where they could.",
    "No change of method took place within the period shown.",
    "Staff at all sites were told of the results at the spring assembly.",
    "Older records are kept at head office and can be seen on request.",
    "Several measures that were agreed upon last winter have begun to take effect.",
    "Comparisons with other companies are difficult, since few of them publish such details.",
    "The works council was heard before the targets were set.",
)

# fmt: on


class Table(NamedTuple):
    """Holds a quantity by site and year: ``values[row][column]``, all different."""

    sites: tuple[str, ...]
    years: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]


class Bars(NamedTuple):
    """Holds a quantity by site in one year, drawn as bars; all different, multiples of `STEP`."""

    sites: tuple[str, ...]
    values: tuple[int, ...]


class Curve(NamedTuple):
    """Holds a quantity by year, drawn as a line; all values differ and are multiples of `STEP`."""

    years: tuple[int, ...]
    values: tuple[int, ...]


class Register(NamedTuple):
    """Lists construction works as rows of (work, site, status)."""

    rows: tuple[tuple[str, str, str], ...]


_COUNTS = ((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 4, 5))
"""Numbers of works with each of the four statuses in a register, in any order."""

Exhibit = Table | Bars | Curve | Register


class Section(NamedTuple):
    """Describes one page: an exhibit, and text with facts that occur nowhere else.

    Attributes:
        page: The page number, from 1.
        topic: The topic; the sections of a report have different topics.
        exhibit: The table or chart.
        opening: A paragraph before the exhibit.
        closing: A paragraph after it; the facts below follow it.
        lead: Name of the responsible person.
        reviewed: Date of the last review.
        budget: Thousand crowns.
    """

    page: int
    topic: SectionTopic
    exhibit: Exhibit
    opening: str
    closing: str
    lead: str
    reviewed: str
    budget: int


class Report(NamedTuple):
    """Describes a report: a cover with the contents, then one page for each section.

    Attributes:
        company: Name of the company.
        accent: Color of headings and charts, ``"#rrggbb"``.
        board: Names on the cover.
        approved: The date on the cover.
        sections: In order, from page 2.
    """

    company: str
    year: int
    accent: str
    board: tuple[str, ...]
    approved: str
    sections: tuple[Section, ...]


def write_report(seed: int) -> Report:
    """Return the report of that seed."""
    rng = np.random.default_rng([_STREAM, seed])
    count = int(rng.integers(PAGES[0], PAGES[1] + 1)) - 1
    year = int(rng.integers(2041, 2080))
    company = f"{pick(rng, LAST_NAMES)} {pick(rng, TRADES)}"
    topics = shuffled(rng, TOPICS)[:count]
    board, leads = _split(_people(rng, _BOARD + count), _BOARD)
    (approved,), dates = _split(_dates(rng, year, 1 + count), 1)
    budgets = [10 * int(tens) for tens in rng.choice(np.arange(10, 100), count, replace=False)]
    makers = _exhibits(rng, count)
    sections = tuple(
        Section(
            page=place + 2,
            topic=topic,
            exhibit=makers[place](rng, year),
            opening=_opening(rng, company, topic),
            closing=" ".join(shuffled(rng, FILLER_SENTENCES)[:5]),
            lead=leads[place],
            reviewed=dates[place],
            budget=budgets[place],
        )
        for place, topic in enumerate(topics)
    )
    return Report(company, year, pick(rng, ACCENTS), board, approved, sections)


def _split(things: list[str], first: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(things[:first]), tuple(things[first:])


def _opening(rng: np.random.Generator, company: str, topic: SectionTopic) -> str:
    first = pick(rng, OPENING_SENTENCES).format(company=company, topic=topic.phrase)
    return " ".join([first, *shuffled(rng, FILLER_SENTENCES)[:3]])


def _people(rng: np.random.Generator, count: int) -> list[str]:
    """Return names that have no part in common, while enough parts are left."""
    first = shuffled(rng, FIRST_NAMES)
    last = shuffled(rng, LAST_NAMES)
    return [
        f"{first[k % len(first)]} {last[(k + k // len(last)) % len(last)]}" for k in range(count)
    ]


def _dates(rng: np.random.Generator, year: int, count: int) -> list[str]:
    """Return different days of that year, none after the 28th of a month."""
    days = rng.choice(12 * 28, count, replace=False)
    return [f"{day % 28 + 1} {MONTHS[day // 28]} {year}" for day in map(int, days)]


# ------------------------------------------------------------------------------------- exhibits


def _exhibits(rng: np.random.Generator, count: int) -> list[Callable[..., Exhibit]]:
    """Return the exhibit of each section; the four kinds alternate, in random order."""
    makers: tuple[Callable[..., Exhibit], ...] = (_table, _bars, _curve, _register)
    order = shuffled(rng, makers)
    return [order[place % len(order)] for place in range(count)]


def _table(rng: np.random.Generator, year: int) -> Table:
    sites = shuffled(rng, SITES)[: int(rng.integers(4, 8))]
    years = tuple(range(year - 3, year + 1))
    values = rng.choice(np.arange(101, 1000), (len(sites), len(years)), replace=False)
    return Table(tuple(sites), years, tuple(tuple(row) for row in values.tolist()))


def _bars(rng: np.random.Generator, year: int) -> Bars:
    sites = shuffled(rng, SITES)[: int(rng.integers(4, 7))]
    return Bars(tuple(sites), _levels(rng, len(sites)))


def _curve(rng: np.random.Generator, year: int) -> Curve:
    years = tuple(range(year - 5, year + 1))
    return Curve(years, _levels(rng, len(years)))


def _levels(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Return different multiples of `STEP`, ``STEP`` to ``12 * STEP``."""
    steps = rng.choice(np.arange(1, 13), count, replace=False)
    return tuple(STEP * int(step) for step in steps)


def _register(rng: np.random.Generator, year: int) -> Register:
    """Return 10 to 12 works; every status occurs, and their counts differ."""
    counts = shuffled(rng, pick(rng, _COUNTS))
    statuses = [
        status for status, times in zip(STATUSES, counts, strict=True) for _ in range(times)
    ]
    works = shuffled(rng, WORKS)[: len(statuses)]
    rows = [(work, pick(rng, SITES), status) for work, status in zip(works, statuses, strict=True)]
    return Register(tuple(shuffled(rng, rows)))
