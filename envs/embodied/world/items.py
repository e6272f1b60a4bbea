"""Defines the types of objects: their parts, sizes and abilities, and distinguishing looks."""

from __future__ import annotations

import zlib
from typing import Literal, NamedTuple

Split = Literal["train", "eval"]
Pattern = Literal["plain", "striped", "dotted"]
Material = Literal["matte", "shiny", "glass"]
Size = Literal["small", "large"]

COLORS: dict[str, tuple[float, float, float]] = {
    "red": (0.80, 0.08, 0.08),
    "orange": (0.95, 0.50, 0.05),
    "yellow": (0.95, 0.85, 0.10),
    "green": (0.10, 0.60, 0.15),
    "blue": (0.10, 0.20, 0.80),
    "purple": (0.50, 0.10, 0.60),
    "white": (0.94, 0.94, 0.94),
    "black": (0.06, 0.06, 0.06),
    "pink": (0.95, 0.55, 0.70),
}
PATTERNS: tuple[Pattern, ...] = ("plain", "striped", "dotted")
MATERIALS: tuple[Material, ...] = ("matte", "shiny", "glass")
SIZES: dict[Size, float] = {"small": 0.8, "large": 1.0}
"""The factor of each size."""


class ItemLook(NamedTuple):
    """Describes the look that distinguishes two objects of one type."""

    color: str
    pattern: Pattern
    material: Material
    size: Size


class ItemPart(NamedTuple):
    """Describes one primitive of an object. Lengths are in centimeters, from the base's center.

    Attributes:
        shape: ``"box"``, ``"cylinder"``, ``"sphere"`` or ``"ellipsoid"``.
        size: Half sizes, or radius and half height.
        at: Position of its center: right, back and up.
        color: ``"look"``, ``"dark"``, ``"light"``, ``"metal"``, ``"wood"`` or ``"leaf"``.
    """

    shape: str
    size: tuple[float, ...]
    at: tuple[float, float, float]
    color: str = "look"


class ItemType(NamedTuple):
    """Describes one type of objects.

    Attributes:
        parts: The primitives of an object; the first one has the pattern.
        sliced: Whether a knife can slice it.
        washed: Whether it can be dirty and can be washed.
        heated: Whether tasks heat or cool it.
        holds: Whether it can hold another object and be carried with it.
        cuts: Whether it slices others.
        use: The purpose, in words that match no other type; ``""`` if no task names it.
    """

    parts: tuple[ItemPart, ...]
    use: str = ""
    sliced: bool = False
    washed: bool = False
    heated: bool = False
    holds: bool = False
    cuts: bool = False


def _box(x: float, y: float, z: float, up: float = 0.0, color: str = "look", right: float = 0.0,
         back: float = 0.0) -> ItemPart:  # fmt: skip
    return ItemPart("box", (x, y, z), (right, back, up + z), color)


def _can(radius: float, half: float, up: float = 0.0, color: str = "look", right: float = 0.0,
         back: float = 0.0) -> ItemPart:  # fmt: skip
    return ItemPart("cylinder", (radius, half), (right, back, up + half), color)


def _ball(radius: float, up: float = 0.0, color: str = "look", right: float = 0.0,
          back: float = 0.0) -> ItemPart:  # fmt: skip
    return ItemPart("sphere", (radius,), (right, back, up + radius), color)


def _egg(x: float, y: float, z: float, up: float = 0.0, color: str = "look",
         right: float = 0.0) -> ItemPart:  # fmt: skip
    return ItemPart("ellipsoid", (x, y, z), (right, 0.0, up + z), color)


ITEMS: dict[str, ItemType] = {
    "Apple": ItemType((_ball(6), _can(0.8, 2, 11, "wood"), _egg(2.5, 1.2, 0.6, 13.5, "leaf", 2.5)),
                      "a fruit with a core", True, True, True),
    "Tomato": ItemType((_egg(7, 7, 5.2), _egg(4, 4, 0.8, 10, "leaf")),
                       "something to make ketchup from", True, True, True),
    "Potato": ItemType((_egg(9.5, 5, 4.5),), "something to make chips from", True, True, True),
    "Lettuce": ItemType((_ball(7), _egg(9, 5, 3, 0, "leaf"), _egg(5, 9, 5, 0, "leaf")),
                        "the leaves of a salad", True, True, True),
    "Bread": ItemType((_box(9.5, 5, 4), _egg(9.5, 5, 3, 5.5)), "something to toast", True, False,
                      True),
    "Egg": ItemType((_egg(4, 4, 5.5), _can(3, 1, 0, "dark")), "something to boil or fry that has a "
                    "shell", False, True, True),
    "Mug": ItemType((_can(5.5, 6), _box(2.6, 0.9, 3.2, 2.5, "look", 7.2), _can(4.6, 0.3, 11.8,
                    "dark")), "something to drink coffee from", False, True, True, True),
    "Cup": ItemType((_can(4.2, 8.5), _can(5.4, 1.2, 15.2), _can(3.6, 0.3, 17.4, "dark")),
                    "something to drink juice from", False, True, True, True),
    "Bowl": ItemType((_can(9.5, 3.2, 1.4), _can(4.5, 1), _can(8, 0.3, 7.6, "dark")),
                     "something to eat soup from", False, True, True, True),
    "Plate": ItemType((_can(10.5, 0.9), _can(7, 0.2, 1.7)),
                      "something flat to serve a meal on", False, True, True, True),
    "Pan": ItemType((_can(7, 2, 0, "look", -3), _box(4.5, 1.1, 0.9, 2, "dark", 6.3),
                     _can(6, 0.2, 3.9, "dark", -3)), "something to fry in", False, True, False,
                    True),
    "Pot": ItemType((_can(7.5, 5.5), _box(10.5, 1, 0.8, 7.5, "dark"), _can(6.5, 0.3, 10.8,
                    "dark")), "something to cook pasta in", False, True, False, True),
    "Kettle": ItemType((_egg(7.5, 7.5, 7), _box(6, 0.8, 0.8, 16, "dark"), _box(0.8, 0.8, 2, 12.5,
                       "dark", 5), _box(0.8, 0.8, 2, 12.5, "dark", -5), _egg(3.5, 1.2, 1.2, 8,
                       "metal", 7)), "something to boil water for tea in", False, True),
    "Fork": ItemType((_box(0.9, 8, 0.6, 0, "look", 0, -2), _box(2.6, 0.6, 0.6, 0, "look", 0, 6),
                      _box(0.5, 2.2, 0.6, 0, "metal", -2.1, 8.5), _box(0.5, 2.2, 0.6, 0, "metal",
                      0, 8.5), _box(0.5, 2.2, 0.6, 0, "metal", 2.1, 8.5)), "", False, True),
    "Spoon": ItemType((_box(0.9, 7, 0.6, 0, "look", 0, -3), ItemPart("ellipsoid", (3, 4.5, 1),
                      (0, 6.5, 1), "metal")), "", False, True),
    "Knife": ItemType((_box(1.4, 4, 0.9, 0, "look", 0, -6.5), _box(2, 6.5, 0.4, 0, "metal", 0.6,
                      4)), "", False, True, cuts=True),
    "ButterKnife": ItemType((_box(2.2, 2.4, 0.9, 0, "look", 0, -8), _box(1, 8, 0.4, 0, "metal", 0,
                            2.4)), "", False, True, cuts=True),
    "Spatula": ItemType((_box(0.9, 6, 0.7, 0, "look", 0, -4.5), _box(4.2, 4, 0.5, 0, "dark", 0,
                        5.5)), "", False, True),
    "Ladle": ItemType((_box(0.9, 6.5, 0.7, 0, "look", 0, -4),
                       ItemPart("sphere", (3.8,), (0, 6, 3.8), "metal")), "", False, True),
    "Book": ItemType((_box(8, 6, 1.8), _box(7.6, 0.4, 1.4, 0.4, "light", 0, -6)),
                     "something with pages to read in bed"),
    "Newspaper": ItemType((_box(10, 7, 0.6), _box(8, 1, 0.1, 1.2, "dark", 0, 4), _box(3.5, 3, 0.1,
                          1.2, "dark", -4, -1), _box(3.5, 3, 0.1, 1.2, "dark", 4, -1)),
                          "something that tells yesterday's news"),
    "Laptop": ItemType((_box(9.5, 6.5, 0.8), _box(9.5, 0.6, 6, 1.6, "look", 0, 6), _box(8.3, 0.2,
                       5, 2.6, "dark", 0, 5.3)), "something to write programs on"),
    "CellPhone": ItemType((_box(4, 7.5, 0.8), _box(3.3, 6, 0.1, 1.6, "dark")),
                          "something to call a friend with"),
    "RemoteControl": ItemType((_box(2.6, 9, 1.3), _can(1, 0.3, 2.6, "light", 0, 5), _can(1, 0.3,
                              2.6, "light", 0, 1), _can(1, 0.3, 2.6, "light", 0, -3)),
                              "something that changes the channel"),
    "CreditCard": ItemType((_box(6.5, 4, 0.4), _box(6.4, 1, 0.1, 0.8, "dark", 0, 2), _box(1.2, 1,
                           0.1, 0.8, "metal", -4, -1)), "something to pay in a shop with"),
    "KeyChain": ItemType((_can(3.2, 0.6), _box(1, 4, 0.5, 0, "metal", 3, -4), _box(1, 4, 0.5, 0,
                         "metal", -3, -4)), "something that unlocks the front door"),
    "CD": ItemType((_can(8, 0.4), _can(2.4, 0.2, 0.8, "light")), "something that holds music"),
    "Watch": ItemType((_can(4, 1.1), _can(2, 0.2, 2.2, "light"), _box(1.8, 8.5, 0.5, 0, "dark")),
                      "something to wear on the wrist"),
    "AlarmClock": ItemType((_box(6.5, 3.2, 5), ItemPart("cylinder", (3.6, 0.4), (0, -3.2, 5),
                           "light"), _ball(2.4, 9.5, "metal", -3.6), _ball(2.4, 9.5, "metal",
                           3.6)), "something that wakes people up"),
    "Pillow": ItemType((_egg(10.5, 7, 4.5),), "something to rest the head on"),
    "HandTowel": ItemType(
        (
            _box(9, 6, 1.2),
            _box(8.8, 0.6, 0.1, 2.4, "light", 0, -4.5),
            _box(8.8, 0.6, 0.1, 2.4, "light", 0, 4.5),
        ),
        "something to dry hands with",
        False,
        True,
    ),
    "SoapBar": ItemType((_box(6, 3.8, 2), _egg(4.5, 2.8, 0.8, 3.6, "light")), "", False, True),
    "SoapBottle": ItemType((_can(4, 6.5), _can(1.2, 2.5, 13, "light"), _box(3, 1, 0.8, 18,
                           "light", -1.5)), "something to wash hands with"),
    "SprayBottle": ItemType((_box(4.5, 3, 6), _can(1.6, 1.8, 12, "dark"), _box(4.5, 1.5, 1.5,
                            15.6, "dark", -2)), "something to spray plants or windows with"),
    "DishSponge": ItemType((_box(6.5, 4.5, 1.8, 1.6), _box(6.5, 4.5, 0.8, 0, "leaf")),
                           "something to scrub pans with", False, True),
    "ToiletPaper": ItemType((_can(6, 5.5), _can(2.2, 0.3, 11, "dark")), ""),
    "TissueBox": ItemType((_box(9, 5.5, 4), _egg(3.5, 0.8, 4, 7, "light")),
                          "something to blow the nose with"),
    "Candle": ItemType((_can(3, 8), _can(6, 0.8, 0, "metal"), _egg(1.2, 1.2, 2.2, 16, "flame")),
                       "something that burns for light in a power cut"),
    "Vase": ItemType((_egg(6, 6, 6.5), _can(2.4, 3.5, 11), _can(4, 0.7, 18)),
                     "something to put flowers in", False, False),
    "Statue": ItemType((_egg(3.4, 2.6, 6, 2.5), _box(4.5, 4.5, 1.5), _ball(3, 13)),
                       "a small work of art"),
    "BasketBall": ItemType((_ball(9.5), ItemPart("cylinder", (9.6, 0.4), (0, 0, 9.5), "dark")),
                           "something to bounce and throw at a hoop"),
    "TennisRacket": ItemType((_can(6.5, 0.8, 0, "look", 0, 4), _can(5.2, 0.1, 1.6, "wood", 0, 4),
                             _box(1.2, 4, 1, 0, "dark", 0, -6.2)),
                             "something to play at Wimbledon with"),
    "BaseballBat": ItemType((_box(10.5, 1.9, 1.9), _ball(2.6, 0, "look", 8), _box(3, 2.2, 2.2, 0,
                            "dark", -7.5)), "something to hit a pitcher's ball with"),
    "WineBottle": ItemType((_can(4.4, 7), _can(1.6, 4, 14), _can(4.5, 2.5, 4, "light")),
                           "something that is opened with a corkscrew"),
    "SaltShaker": ItemType((_can(3.6, 4.2), _egg(3.6, 3.6, 2.2, 7, "metal")), ""),
    "PepperShaker": ItemType((_box(3, 3, 5.5), _ball(2.4, 11, "dark")), ""),
    "WateringCan": ItemType((_can(6, 5.5), _box(0.9, 0.9, 4.5, 3, "look", 8.5), _box(3.5, 0.9, 0.9,
                            9.5, "look", -6.5), _egg(2, 1, 2, 11, "metal", -9)),
                            "something to give plants water with"),
}  # fmt: skip
"""All types by ALFRED's names."""


def word_of(kind: str) -> str:
    """Return the name of a type in running text, for example ``"alarm clock"``."""
    if kind == "CD":
        return kind
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind)
    return spaced.strip()


def split_of(kind: str, color: str, pattern: str) -> Split:
    """Return the split that an appearance belongs to; training and evaluation share none.

    Each color of a type has one pattern for evaluation and two for training.
    """
    turn = zlib.crc32(kind.encode()) + list(COLORS).index(color)
    return "eval" if turn % 3 == PATTERNS.index(pattern) else "train"


def looks_of(kind: str, split: Split) -> list[tuple[str, Pattern]]:
    """Return the colors with patterns that a type has in a split."""
    return [
        (color, pattern)
        for color in COLORS
        for pattern in PATTERNS
        if split_of(kind, color, pattern) == split
    ]
