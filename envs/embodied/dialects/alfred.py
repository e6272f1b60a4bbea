"""Defines the dialect of EB-ALFRED: find objects by name, put them at the last found receptacle."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ..world.house import FurnishedHouse
from ..world.state import OK, HouseState
from .base import Action, Dialect, kinds_of

_REASONS = {
    "holding": "The {kind} is in the hand.",
    "hand_full": "The hand holds {held}; put it down first.",
    "hand_empty": "The hand is empty.",
    "not_near": "Find the {name} first: it is out of reach.",
    "not_here": "There is no {name} within reach. Find one, or try another one.",
    "shut_in": "The {kind} cannot be seen: it is inside of something that is closed.",
    "no_receptacle": "Find the receptacle first: there is none to put something into.",
    "closed": "The {target} is closed, so that nothing can be put into it.",
    "full": "There is no free place at the {target}.",
    "not_openable": "The {name} cannot be opened.",
    "already_open": "The {name} is open already.",
    "already_closed": "The {name} is closed already.",
    "is_on": "The {name} is running; turn it off first.",
    "is_open": "The {name} is open; close it first.",
    "no_switch": "The {name} cannot be turned on or off.",
    "already_on": "The {name} is on already.",
    "already_off": "The {name} is off already.",
    "no_knife": "The hand holds no knife.",
    "not_sliceable": "The {name} cannot be sliced.",
    "already_sliced": "The {name} is sliced already.",
}


class AlfredDialect(Dialect):
    """Writes EB-ALFRED's action strings for the fixtures and objects of a house.

    The order is EB-ALFRED's: find each type, pick up each type, put down, drop, open and close,
    turn on and off, slice; then the actions for further instances of each type.
    """

    name: ClassVar[str] = "alfred"
    latches_progress: ClassVar[bool] = False

    @override
    def make_actions(self) -> list[Action]:
        """Return the actions for first instances, then those for further ones."""
        house = self.house
        names = [*house.fixtures, *house.items]
        first = sorted(name for name in names if "_" not in name)
        further = sorted(name for name in names if "_" in name)
        kinds = kinds_of(house)
        return [
            *(Action(f"find a {name}", "go_to", name) for name in first),
            *(Action(f"pick up the {kind}", "pick", kind, True) for kind in kinds),
            Action("put down the object in hand", "put"),
            Action("drop the object in hand", "drop"),
            *self._doors_and_switches(first),
            *(
                Action(f"slice the {kind}", "slice", kind, True)
                for kind in kinds
                if house.items[kind].type.sliced
            ),
            *(Action(f"find a {name}", "go_to", name) for name in further),
            *self._doors_and_switches(further),
        ]

    def _doors_and_switches(self, names: list[str]) -> list[Action]:
        fixtures = [self.house.fixtures[name] for name in names if name in self.house.fixtures]
        doors = [each.name for each in fixtures if each.type.opening]
        switches = [each.name for each in fixtures if each.type.switch]
        return [
            *(Action(f"{word} the {name}", verb, name) for name in doors
              for word, verb in (("open", "open_up"), ("close", "close_up"))),
            *(Action(f"turn {word} the {name}", f"turn_{word}", name) for name in switches
              for word in ("on", "off")),
        ]  # fmt: skip

    @override
    def written_object(self, state: HouseState, verb: str, name: str) -> str:
        """Return ``""`` for putting down, which has no receptacle as argument."""
        return "" if verb in ("put", "drop") else name

    @override
    def explain(self, state: HouseState, action: Action, code: str) -> str:
        """Return the success or the error; the feedback never contains information from a frame."""
        if code == OK:
            return "The action succeeded."
        reason = _REASONS[code].format(
            name=action.object,
            kind=kind_in(self.house, action.object),
            held=kind_in(self.house, state.held),
            target=state.target or "agent",
        )
        return f"The action failed. {reason}"


def kind_in(house: FurnishedHouse, name: str) -> str:
    """Return the type of an object or fixture, or the name itself if it is a type."""
    if name in house.fixtures:
        return house.fixtures[name].kind
    return house.items[name].kind if name in house.items else name
