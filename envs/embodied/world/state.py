"""Defines the state of a house, and the rules by which actions change it.

Every operation returns `OK`, or changes nothing and returns the code of the first rule that forbids
it. Heating, cooling and washing depend on the appliance, its door and its switch.
"""

from __future__ import annotations

from typing import NamedTuple

from .house import FLOOR_SLOTS, FurnishedHouse

OK = ""
FLOOR = "floor:"
"""Prefix of the holder of a dropped object; the name of the fixture behind it follows."""


class ItemPlace(NamedTuple):
    """Describes the place of an object: its holder (a fixture or object), and the slot there."""

    holder: str
    slot: int


class HouseState:
    """Holds the part of a house that actions change.

    Args:
        house: The house, in its first state.

    Attributes:
        places: The place of each object that is not held.
        held: The object in hand, ``""`` if there is none.
        open: Fixtures that are open.
        on: Fixtures that are turned on.
        sliced: Objects that are sliced.
        dirty: Objects that are dirty.
        hot: Objects that are hot.
        cold: Objects that are cold.
        at: The fixture that the agent stands at, ``""`` in the beginning.
        focus: The fixture or object that the agent looks at.
        found: The fixture or object that the agent last went to.
        target: The receptacle into which an object in hand is put, ``""`` if there is none.
        delivered: Every object with every receptacle that it was put into.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        self.house = house
        self.places = {name: ItemPlace(*place) for name, place in house.places.items()}
        self.held = ""
        self.open: set[str] = set(house.open)
        self.on: set[str] = set()
        self.sliced: set[str] = set()
        self.dirty: set[str] = set(house.dirty)
        self.hot: set[str] = set()
        self.cold: set[str] = set()
        self.at = self.focus = self.found = self.target = ""
        self.delivered: set[tuple[str, str]] = set()

    def copy(self) -> HouseState:
        """Return an independent copy on the same house."""
        other = HouseState.__new__(HouseState)
        other.house = self.house
        other.places = dict(self.places)
        other.held, other.at = self.held, self.at
        other.focus, other.found, other.target = self.focus, self.found, self.target
        for name in ("open", "on", "sliced", "dirty", "hot", "cold", "delivered"):
            setattr(other, name, set(getattr(self, name)))
        return other

    # ------------------------------------------------------------------ queries

    def fixture_of(self, name: str) -> str:
        """Return the fixture at which an object or fixture is used, ``""`` for an object in hand.

        An object on the floor is used from the fixture in front of which it lies.
        """
        house = self.house
        if name in house.fixtures:
            return house.fixtures[name].host or name
        place = self.places.get(name)
        if place is None:
            return ""
        if place.holder in house.items:
            return self.fixture_of(place.holder)
        return place.holder.removeprefix(FLOOR)

    def holder_of(self, name: str) -> str:
        """Return the direct holder of an object, ``""`` for an object in hand."""
        place = self.places.get(name)
        return place.holder if place else ""

    def contents(self, holder: str) -> list[str]:
        """Return the objects that a receptacle holds directly, in the order of their slots."""
        inside = [(place.slot, name) for name, place in self.places.items()
                  if place.holder == holder]  # fmt: skip
        return [name for _, name in sorted(inside)]

    def all_contents(self, holder: str) -> list[str]:
        """Return the objects that a receptacle holds, also those inside others."""
        direct = self.contents(holder)
        return [*direct, *(inner for each in direct for inner in self.all_contents(each))]

    def is_shut_in(self, name: str) -> bool:
        """Return whether an object is inside a closed fixture."""
        holder = self.holder_of(name)
        while holder in self.house.items:
            holder = self.holder_of(holder)
        if not holder or holder.startswith(FLOOR):
            return False
        return bool(self.house.fixtures[holder].type.opening) and holder not in self.open

    def free_slot(self, holder: str) -> int | None:
        """Return the first free slot of a receptacle, or None."""
        taken = {place.slot for place in self.places.values() if place.holder == holder}
        house = self.house
        if holder.startswith(FLOOR):
            count = FLOOR_SLOTS
        elif holder in house.fixtures:
            count = house.fixtures[holder].type.slots
        else:
            count = int(house.items[holder].type.holds)
        return next((slot for slot in range(count) if slot not in taken), None)

    # ------------------------------------------------------------------ operations

    def go_to(self, name: str) -> str:
        """Go to a fixture or object and look at it."""
        if name == self.held:
            return "holding"
        self.at = self.fixture_of(name)
        self.focus = self.found = name
        if self.can_hold(name):
            self.target = name
        return OK

    def can_hold(self, name: str) -> bool:
        """Return whether a fixture or object can hold objects at all."""
        house = self.house
        if name in house.fixtures:
            return house.fixtures[name].type.slots > 0
        return house.items[name].type.holds

    def pick(self, item: str) -> str:
        """Take an object in hand, with the objects that it holds."""
        if self.held:
            return "hand_full"
        if not self.at or self.fixture_of(item) != self.at:
            return "not_near"
        if self.is_shut_in(item):
            return "shut_in"
        del self.places[item]
        self.held = item
        return OK

    def put(self, holder: str) -> str:
        """Put the object in hand into a receptacle."""
        if not self.held:
            return "hand_empty"
        if not holder or self.fixture_of(holder) != self.at or holder == self.held:
            return "no_receptacle"
        house = self.house
        fixture = house.fixtures.get(holder)
        shut = fixture is not None and fixture.type.opening and holder not in self.open
        if shut or (fixture is None and self.is_shut_in(holder)):
            return "closed"
        nested = holder in house.items and bool(self.contents(self.held))
        if not self.can_hold(holder) or nested:
            return "no_receptacle"
        slot = self.free_slot(holder)
        if slot is None:
            return "full"
        self._release(ItemPlace(holder, slot))
        return OK

    def drop(self) -> str:
        """Drop the object in hand on the floor."""
        if not self.held:
            return "hand_empty"
        holder = f"{FLOOR}{self.at}"
        slot = self.free_slot(holder) if self.at else None
        if slot is None:
            return "full"
        self._release(ItemPlace(holder, slot))
        return OK

    def open_up(self, fixture: str) -> str:
        """Open a fixture, which becomes the `target` for the object in hand."""
        if not self.house.fixtures[fixture].type.opening:
            return "not_openable"
        if self.at != fixture:
            return "not_near"
        if fixture in self.open:
            return "already_open"
        if fixture in self.on:
            return "is_on"
        self.open.add(fixture)
        self.target = fixture
        self.focus = self.found if self.fixture_of(self.found) == fixture else fixture
        return OK

    def close_up(self, fixture: str) -> str:
        """Close a fixture; a cooler makes the objects in it cold."""
        if not self.house.fixtures[fixture].type.opening:
            return "not_openable"
        if self.at != fixture:
            return "not_near"
        if fixture not in self.open:
            return "already_closed"
        self.open.remove(fixture)
        self.focus = fixture
        if self.house.fixtures[fixture].type.role == "cool":
            self._make(self.all_contents(fixture), "cold")
        return OK

    def turn(self, fixture: str, on: bool) -> str:
        """Turn a fixture on or off.

        A heater makes the objects in it hot, a faucet makes the objects in its sink clean.
        """
        each = self.house.fixtures[fixture]
        if not each.type.switch:
            return "no_switch"
        if self.at != (each.host or fixture):
            return "not_near"
        if (fixture in self.on) == on:
            return "already_on" if on else "already_off"
        if on and fixture in self.open:
            return "is_open"
        self.focus = fixture
        if not on:
            self.on.remove(fixture)
            return OK
        self.on.add(fixture)
        if each.type.role == "heat":
            self._make(self.all_contents(fixture), "hot")
        elif each.type.role == "tap":
            self.dirty -= set(self.all_contents(each.host))
        return OK

    def slice(self, item: str) -> str:
        """Slice an object with the knife in hand."""
        if not self.held or not self.house.items[self.held].type.cuts:
            return "no_knife"
        if not self.house.items[item].type.sliced:
            return "not_sliceable"
        if not self.at or self.fixture_of(item) != self.at:
            return "not_near"
        if self.is_shut_in(item):
            return "shut_in"
        if item in self.sliced:
            return "already_sliced"
        self.sliced.add(item)
        self.focus = item
        return OK

    def _release(self, place: ItemPlace) -> None:
        """Put the object in hand at a place; running appliances act on it."""
        item, self.held = self.held, ""
        self.places[item] = place
        self.focus = item
        holder = place.holder
        fixture = "" if holder.startswith(FLOOR) else self.fixture_of(item)
        carried = [item, *self.all_contents(item)]
        self.delivered |= {(each, holder) for each in carried}
        if not fixture:
            return
        self.delivered |= {(each, fixture) for each in carried}
        role = self.house.fixtures[fixture].type.role
        if role == "heat" and fixture in self.on:
            self._make(carried, "hot")
        elif role == "wash" and self.house.tap_of(fixture) in self.on:
            self.dirty -= set(carried)

    def _make(self, items: list[str], temperature: str) -> None:
        warm, cool = (self.hot, self.cold) if temperature == "hot" else (self.cold, self.hot)
        warm |= set(items)
        cool -= set(items)
