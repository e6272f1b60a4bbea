"""Defines the dialect of EB-Habitat's 70 skills, in the order of EmbodiedBench."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from typing_extensions import override

from .base import Action
from .habitat import HabitatDialect, fixture_words

RECEPTACLES: Mapping[str, str] = {
    "cabinet 7": "cabinet 3",
    "cabinet 6": "cabinet 2",
    "cabinet 5": "cabinet 1",
    "cabinet 4": "cabinet 4",
    "refrigerator push point": "refrigerator",
    "chair 1": "chair 1",
    "table 1": "table 1",
    "table 2": "table 2",
    "TV stand": "TV stand",
    "sink in the kitchen": "sink in the kitchen",
    "right counter in the kitchen": "right counter in the kitchen",
    "left counter in the kitchen": "left counter in the kitchen",
    "sofa": "sofa",
    "refrigerator": "refrigerator",
    "left drawer of the kitchen counter": "drawer 1",
    "right drawer of the kitchen counter": "drawer 2",
}
"""The receptacles of the skills, with the fixture of a house that represents each one."""

OBJECTS: Mapping[str, str] = {
    "ball": "BasketBall", "clamp": "", "hammer": "", "screwdriver": "", "padlock": "",
    "scissors": "", "block": "", "drill": "", "spatula": "Spatula", "knife": "Knife",
    "spoon": "Spoon", "plate": "Plate", "sponge": "DishSponge", "cleanser": "", "plum": "",
    "pear": "", "peach": "", "apple": "Apple", "lemon": "", "can": "", "box": "TissueBox",
    "banana": "", "strawberry": "", "lego": "", "rubriks cube": "", "book": "Book",
    "bowl": "Bowl", "cup": "Cup", "mug": "Mug", "orange": "", "lid": "", "toy airplane": "",
    "wrench": "",
}  # fmt: skip
"""The categories of the skills, with the type of objects of a house that represents each one.

A house has no object of the categories with ``""``: picking one up is invalid, as in an episode of
EB-Habitat whose scene has none.
"""

_DOORS = 5
"""The first receptacles of the list: they can be opened, and nothing can be placed there."""


class SkillsDialect(HabitatDialect):
    """Implements EB-Habitat's 70 skills: 16 navigate, 33 pick up, 11 place, 10 open or close.

    The houses have exactly the receptacles of the list. No skill opens a drawer, so the drawers
    are open from the beginning.
    """

    name: ClassVar[str] = "skills"
    rooms = 6
    fixtures = ("CounterTop", "Sink", "Fridge", "Cabinet", "DiningTable", "Sofa", "ArmChair",
                "TVStand", "Drawer")  # fmt: skip
    types = tuple(kind for kind in OBJECTS.values() if kind)
    open_at_first = ("Drawer",)

    @cached_property
    @override
    def words(self) -> Mapping[str, str]:
        """Return the names of the receptacles, by the name of the fixture."""
        named = {word: name for name, word in fixture_words(self.house).items()}
        return {named[word]: skill for skill, word in RECEPTACLES.items()}

    @override
    def item_word(self, kind: str) -> str:
        """Return the category of a type of objects."""
        return next(word for word, each in OBJECTS.items() if (each or word) == kind)

    @override
    def make_actions(self) -> list[Action]:
        """Return the 70 skills.

        Raises:
            KeyError: If the house lacks a receptacle of the list.
        """
        named = {word: name for name, word in fixture_words(self.house).items()}
        places = {skill: named[word] for skill, word in RECEPTACLES.items()}
        doors = ["refrigerator", *[*places][: _DOORS - 1]]
        return [
            *(Action(f"navigate to the {word}", "go_to", name) for word, name in places.items()),
            *(
                Action(f"pick up the {word}", "pick", kind or word, True)
                for word, kind in OBJECTS.items()
            ),
            *(
                Action(f"place at the {word}", "put", name)
                for word, name in [*places.items()][_DOORS:]
            ),
            *(
                Action(f"{verb} the {doors[0]}", operation, places[doors[0]])
                for verb, operation in (("open", "open_up"), ("close", "close_up"))
            ),
            *(Action(f"open the {word}", "open_up", places[word]) for word in doors[1:]),
            *(Action(f"close the {word}", "close_up", places[word]) for word in doors[1:]),
        ]
