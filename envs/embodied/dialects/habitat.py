"""Defines the dialects of EB-Habitat: receptacles by name, and the 70 skills of EmbodiedBench."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from typing_extensions import override

from ..world.house import Fixture, FurnishedHouse
from ..world.items import word_of
from ..world.state import OK, HouseState
from .base import Action, Dialect, kinds_of

_IN_ROOMS = ("Sink", "CounterTop")

REASONS = {
    "hand_full": "The robot holds something; place it before another object is picked up.",
    "hand_empty": "The robot holds nothing that could be placed.",
    "not_near": "The robot is not near it; navigate there first.",
    "not_here": "No such object is near the robot; navigate to another place to find it.",
    "shut_in": "The object cannot be reached: the receptacle is closed.",
    "no_receptacle": "The robot is not near this receptacle; navigate to it first.",
    "closed": "The receptacle is closed; open it first.",
    "full": "There is no free place.",
    "not_openable": "It cannot be opened.",
    "already_open": "It is open already.",
    "already_closed": "It is closed already.",
    "is_on": "It is running.",
}
"""Feedback for each code of the rules (`HouseState`)."""

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


class HabitatDialect(Dialect):
    """Writes EB-Habitat's action strings for the fixtures and objects of a house.

    The order is EB-Habitat's: navigate, pick up, place, open and close.
    """

    name: ClassVar[str] = "habitat"
    latches_progress: ClassVar[bool] = True

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Return the names of the receptacles, by fixture."""
        return fixture_words(self.house)

    def item_word(self, kind: str) -> str:
        """Return the word for a type of objects."""
        return word_of(kind)

    @override
    def make_actions(self) -> list[Action]:
        """Return the skills for all receptacles and types of objects."""
        words = self.words
        fixtures = self.house.fixtures
        holders = [name for name in words if fixtures[name].type.slots]
        doors = [name for name in words if fixtures[name].type.opening]
        return [
            *(Action(f"navigate to the {words[name]}", "go_to", name) for name in holders),
            *(
                Action(f"pick up the {word_of(kind)}", "pick", kind, True)
                for kind in kinds_of(self.house)
            ),
            *(Action(f"place at the {words[name]}", "put", name) for name in holders),
            *(Action(f"open the {words[name]}", "open_up", name) for name in doors),
            *(Action(f"close the {words[name]}", "close_up", name) for name in doors),
        ]

    @override
    def written_object(self, state: HouseState, verb: str, name: str) -> str:
        """Return the fixture to navigate to for an object."""
        return state.fixture_of(name) if verb == "go_to" else name

    @override
    def explain(self, state: HouseState, action: Action, code: str) -> str:
        """Return the success with the change, or the reason why the action is invalid."""
        if code != OK:
            return f"The action is invalid. {REASONS[code]}"
        if action.verb in ("open_up", "close_up"):
            what = self.words[action.object]
            now = "open" if action.verb == "open_up" else "closed"
            return f"The action succeeded; now the {what} is {now}."
        held = self.item_word(self.house.items[state.held].kind) if state.held else "nothing"
        return f"The action succeeded; the robot holds {held}."


def fixture_words(house: FurnishedHouse) -> dict[str, str]:
    """Return the name of each fixture; one of several of a type has a number or a side."""
    groups: dict[str, list[Fixture]] = {}
    for each in house.fixtures.values():
        groups.setdefault(_base_word(house, each), []).append(each)
    words = {}
    for word, members in groups.items():
        if len(members) == 2 and members[0].kind == "CounterTop":
            first, second = sorted(members, key=lambda each: (each.x, each.y))
            words[first.name], words[second.name] = f"left {word}", f"right {word}"
            continue
        for number, each in enumerate(members, 1):
            is_one_of_many = len(members) > 1 or each.kind in ("DiningTable", "ArmChair", "Cabinet")
            words[each.name] = f"{word} {number}" if is_one_of_many else word
    return {name: words[name] for name in house.fixtures}


def _base_word(house: FurnishedHouse, fixture: Fixture) -> str:
    word = fixture.type.word
    if fixture.kind in _IN_ROOMS:
        return f"{word} in the {house.rooms[fixture.room].kind}"
    return word


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
