"""Writes and reads houses and states as JSON, for simulators that run in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .house import Fixture, FurnishedHouse, Gap, Item, Room
from .items import ItemLook
from .state import HouseState, ItemPlace

_TEXTS = ("held", "at", "focus", "found", "target")
_SETS = ("open", "on", "sliced", "dirty", "hot", "cold")


def write_house(house: FurnishedHouse) -> dict[str, Any]:
    """Return a house as JSON; `read_house` creates an equal one from it."""
    return {
        "rooms": [[each.kind, each.left, each.front, each.right, each.back]
                  for each in house.rooms],
        "doors": [_write_gap(each) for each in house.doors],
        "windows": [_write_gap(each) for each in house.windows],
        "fixtures": [[each.name, each.kind, each.room, each.x, each.y, each.yaw, each.host]
                     for each in house.fixtures.values()],
        "items": [[each.name, each.kind, [*each.look], each.yaw] for each in house.items.values()],
        "places": [[name, *place] for name, place in house.places.items()],
        "dirty": sorted(house.dirty),
        "palette": house.palette,
        "open": sorted(house.open),
    }  # fmt: skip


def read_house(written: Mapping[str, Any]) -> FurnishedHouse:
    """Return the house that `write_house` has written."""
    fixtures = [Fixture(*row) for row in written["fixtures"]]
    items = [Item(name, kind, ItemLook(*look), yaw) for name, kind, look, yaw in written["items"]]
    return FurnishedHouse(
        rooms=tuple(Room(*row) for row in written["rooms"]),
        doors=tuple(_read_gap(row) for row in written["doors"]),
        windows=tuple(_read_gap(row) for row in written["windows"]),
        fixtures={each.name: each for each in fixtures},
        items={each.name: each for each in items},
        places={name: (holder, slot) for name, holder, slot in written["places"]},
        dirty=frozenset(written["dirty"]),
        palette=written["palette"],
        open=frozenset(written["open"]),
    )


def _write_gap(gap: Gap) -> list[Any]:
    return [gap.x, gap.y, gap.along_x, [*gap.rooms]]


def _read_gap(row: list[Any]) -> Gap:
    x, y, along_x, rooms = row
    return Gap(x, y, along_x, tuple(rooms))


def write_state(state: HouseState) -> dict[str, Any]:
    """Return the changes of a state by actions as JSON."""
    return {
        **{name: getattr(state, name) for name in _TEXTS},
        **{name: sorted(getattr(state, name)) for name in _SETS},
        "places": [[name, *place] for name, place in state.places.items()],
        "delivered": sorted(map(list, state.delivered)),
    }


def read_state(house: FurnishedHouse, written: Mapping[str, Any]) -> HouseState:
    """Return the state of a house that `write_state` has written."""
    state = HouseState(house)
    for name in _TEXTS:
        setattr(state, name, str(written[name]))
    for name in _SETS:
        setattr(state, name, set(written[name]))
    state.places = {name: ItemPlace(holder, slot) for name, holder, slot in written["places"]}
    state.delivered = {(item, holder) for item, holder in written["delivered"]}
    return state
