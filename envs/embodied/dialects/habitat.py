"""Defines the dialect of EB-Habitat: navigate to receptacles by name, use objects within reach."""

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
