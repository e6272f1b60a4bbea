"""Represents a scene of AI2-THOR as a `FurnishedHouse` for planner, goals and oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from ...world.fixtures import FIXTURES, FixtureType, Role
from ...world.house import Fixture, FurnishedHouse, Item
from ...world.items import ItemLook, ItemType

_ROLES: Mapping[str, Role] = {
    "Microwave": "heat",
    "Fridge": "cool",
    "Sink": "wash",
    "Faucet": "tap",
    "DeskLamp": "light",
    "FloorLamp": "light",
}
_KNIVES = ("Knife", "ButterKnife")
_ROOM = 1000
"""Assumed capacity of a receptacle, because only ai2thor knows when one is full."""

UNKNOWN_LOOK = ItemLook("", "", "", "")  # type: ignore[arg-type]
"""Look of an object of a scene, because its metadata does not contain one."""


@dataclass(frozen=True)
class SceneFixture(Fixture):
    """Represents a fixture whose abilities are reported by a scene."""

    abilities: FixtureType = field(kw_only=True)

    @property
    @override
    def type(self) -> FixtureType:
        """Return its abilities; the type has no sizes."""
        return self.abilities


@dataclass(frozen=True, slots=True)
class SceneItem(Item):
    """Represents an object whose abilities are reported by a scene."""

    abilities: ItemType = field(kw_only=True)

    @property
    @override
    def type(self) -> ItemType:
        """Return its abilities; the type has no parts."""
        return self.abilities


def scene_house(objects: Mapping[str, Mapping[str, Any]]) -> FurnishedHouse:
    """Return a house with the objects that a simulator reports for a scene.

    Args:
        objects: ``state["objects"]`` of `ThorSimulator`, by name.
    """
    movable = {name for name, each in objects.items() if "pickupable" in each["abilities"]}
    fixtures = {name: _fixture(name, objects) for name in objects if name not in movable}
    items: dict[str, Item] = {name: _item(name, objects[name]) for name in objects
                              if name in movable}  # fmt: skip
    places: dict[str, tuple[str, int]] = {}
    for name in items:
        holder = objects[name]["holder"]
        if holder:
            slot = sum(place[0] == holder for place in places.values())
            places[name] = (holder, slot)
    # In AI2-THOR an object that was not washed in the episode does not count as clean.
    return FurnishedHouse((), (), (), fixtures, items, places, dirty=frozenset(items))


def _fixture(name: str, objects: Mapping[str, Mapping[str, Any]]) -> Fixture:
    each = objects[name]
    abilities, (x, _, y) = each["abilities"], each["at"]
    known = FIXTURES.get(each["kind"])
    spec = FixtureType(
        width=0.0,
        depth=0.0,
        height=0.0,
        slots=_ROOM if "receptacle" in abilities else 0,
        word=known.word if known else each["kind"],
        color=(0.0, 0.0, 0.0),
        opening="door" if "openable" in abilities else "",
        switch="toggleable" in abilities,
        role=_ROLES.get(each["kind"], ""),
    )
    host = each["below"] if each["kind"] == "Faucet" else ""
    return SceneFixture(name, each["kind"], 0, x, y, 0.0, host, abilities=spec)


def _item(name: str, each: Mapping[str, Any]) -> Item:
    abilities = each["abilities"]
    spec = ItemType(
        (),
        sliced="sliceable" in abilities,
        washed=True,
        heated=True,
        holds="receptacle" in abilities,
        cuts=each["kind"] in _KNIVES,
    )
    return SceneItem(name, each["kind"], UNKNOWN_LOOK, abilities=spec)
