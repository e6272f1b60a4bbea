"""Provides a small house for tests with hand-calculated expectations."""

from __future__ import annotations

from visenv.envs.embodied.world.house import Fixture, FurnishedHouse, Item, Room
from visenv.envs.embodied.world.items import ItemLook

RED = ItemLook("red", "plain", "matte", "large")
BLUE = ItemLook("blue", "dotted", "matte", "small")

_KINDS = ("Sink", "Faucet", "Fridge", "Microwave", "Sofa", "SideTable", "Cabinet", "DeskLamp",
          "Drawer")  # fmt: skip


def kitchen() -> FurnishedHouse:
    """Return one room: a sink with a faucet, a fridge, a microwave, a sofa, and so on.

    On the sofa: Mug (red, slot 0), Mug_2 (blue, slot 1), Knife (slot 2), Apple (slot 3).
    On the side table: Bowl (slot 0). In the cabinet: Book (slot 0).
    """
    fixtures = {
        kind: Fixture(
            kind, kind, 0, 1.0 + 0.5 * place, 5.0, 0.0, "Sink" if kind == "Faucet" else ""
        )
        for place, kind in enumerate(_KINDS)
    }
    things = (
        ("Mug", "Mug", RED, ("Sofa", 0)),
        ("Mug_2", "Mug", BLUE, ("Sofa", 1)),
        ("Knife", "Knife", RED, ("Sofa", 2)),
        ("Apple", "Apple", RED, ("Sofa", 3)),
        ("Bowl", "Bowl", RED, ("SideTable", 0)),
        ("Book", "Book", RED, ("Cabinet", 0)),
    )
    return FurnishedHouse(
        rooms=(Room("kitchen", 0.0, 0.0, 6.0, 5.3),),
        doors=(),
        windows=(),
        fixtures=fixtures,
        items={name: Item(name, kind, look) for name, kind, look, _ in things},
        places={name: place for name, _, _, place in things},
        dirty=frozenset({"Mug"}),
    )
