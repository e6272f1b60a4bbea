"""Lists the words of reports; all people and companies are fictional."""

from __future__ import annotations

from typing import NamedTuple


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
