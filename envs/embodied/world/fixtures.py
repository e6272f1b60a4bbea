"""Defines the types of receptacles and appliances, with their sizes, slots and abilities."""

from __future__ import annotations

from typing import Literal, NamedTuple

Opening = Literal["", "door", "drawer"]
Role = Literal["", "heat", "cool", "wash", "light", "tap"]


class FixtureType(NamedTuple):
    """Describes one type of receptacle or appliance. Lengths are in meters.

    Attributes:
        width: Size along the wall.
        depth: Size from the wall into the room.
        height: Height of the surface with objects, or of the whole body of a closed receptacle.
        slots: Number of objects that it holds, in a row; 0 if it is not a receptacle.
        opening: The way it opens, ``""`` if it does not open.
        switch: Whether it can be turned on and off.
        role: The effect on objects: a heater heats the objects in it while it is on, a cooler cools
            them while it is closed, a basin is where the tap washes objects; a light is a lamp.
        word: The name of the type in the dialect of EB-Habitat.
        color: RGB, 0 to 1.
    """

    width: float
    depth: float
    height: float
    slots: int
    word: str
    color: tuple[float, float, float]
    opening: Opening = ""
    switch: bool = False
    role: Role = ""


FIXTURES: dict[str, FixtureType] = {
    "CounterTop": FixtureType(1.6, 0.6, 0.9, 6, "counter", (0.80, 0.78, 0.74)),
    "Sink": FixtureType(0.8, 0.6, 0.8, 2, "sink", (0.65, 0.68, 0.70), role="wash"),
    "StoveBurner": FixtureType(
        0.7, 0.6, 0.9, 2, "stove", (0.25, 0.25, 0.27), switch=True, role="heat"
    ),
    "Fridge": FixtureType(
        0.8, 0.7, 1.7, 4, "refrigerator", (0.86, 0.88, 0.90), "door", role="cool"
    ),
    "Microwave": FixtureType(
        0.7, 0.5, 1.3, 2, "microwave", (0.30, 0.30, 0.33), "door", True, "heat"
    ),
    "Cabinet": FixtureType(0.9, 0.5, 0.8, 3, "cabinet", (0.55, 0.38, 0.24), "door"),
    "CoffeeMachine": FixtureType(
        0.5, 0.5, 0.8, 1, "coffee machine", (0.20, 0.20, 0.22), switch=True
    ),
    "GarbageCan": FixtureType(0.45, 0.45, 0.5, 1, "trash can", (0.40, 0.42, 0.40)),
    "DiningTable": FixtureType(1.6, 0.8, 0.75, 6, "table", (0.60, 0.42, 0.25)),
    "Sofa": FixtureType(1.8, 0.8, 0.45, 6, "sofa", (0.35, 0.40, 0.60)),
    "ArmChair": FixtureType(0.8, 0.75, 0.45, 2, "chair", (0.55, 0.30, 0.30)),
    "CoffeeTable": FixtureType(1.1, 0.55, 0.42, 4, "coffee table", (0.45, 0.30, 0.20)),
    "TVStand": FixtureType(1.3, 0.42, 0.5, 5, "TV stand", (0.30, 0.24, 0.20)),
    "SideTable": FixtureType(0.7, 0.5, 0.55, 2, "side table", (0.50, 0.38, 0.26)),
    "FloorLamp": FixtureType(
        0.4, 0.4, 1.5, 0, "floor lamp", (0.85, 0.80, 0.60), switch=True, role="light"
    ),
    "Shelf": FixtureType(1.1, 0.35, 1.0, 4, "shelf", (0.66, 0.50, 0.34)),
    "Cart": FixtureType(0.7, 0.45, 0.8, 2, "cart", (0.50, 0.55, 0.58)),
    "Bed": FixtureType(1.9, 0.95, 0.5, 7, "bed", (0.80, 0.82, 0.92)),
    "Dresser": FixtureType(1.1, 0.45, 0.85, 4, "dresser", (0.48, 0.32, 0.22)),
    "Drawer": FixtureType(0.9, 0.5, 0.55, 3, "drawer", (0.70, 0.60, 0.45), "drawer"),
    "Desk": FixtureType(1.3, 0.6, 0.74, 5, "desk", (0.52, 0.36, 0.22)),
    "DeskLamp": FixtureType(
        0.45, 0.45, 1.1, 0, "desk lamp", (0.20, 0.35, 0.55), switch=True, role="light"
    ),
    "Safe": FixtureType(0.6, 0.5, 0.6, 2, "safe", (0.35, 0.37, 0.40), "door"),
    "Ottoman": FixtureType(0.6, 0.5, 0.42, 2, "stool", (0.62, 0.50, 0.40)),
    "Toilet": FixtureType(0.5, 0.6, 0.75, 1, "toilet", (0.92, 0.92, 0.94)),
    "Bathtub": FixtureType(1.5, 0.7, 0.5, 5, "bathtub", (0.90, 0.92, 0.94)),
    "Faucet": FixtureType(0.2, 0.2, 0.3, 0, "faucet", (0.80, 0.80, 0.85), switch=True, role="tap"),
}
"""All types by ALFRED's names (TVStand is EB-Habitat's). A faucet is part of a sink."""

ROOMS: dict[str, tuple[str, ...]] = {
    "kitchen": (
        "CounterTop", "CounterTop", "Sink", "StoveBurner", "Fridge", "Microwave", "Cabinet",
        "CoffeeMachine", "GarbageCan",
    ),
    "living room": (
        "Sofa", "DiningTable", "TVStand", "CoffeeTable", "Shelf", "ArmChair", "SideTable", "Cart",
        "FloorLamp",
    ),
    "bedroom": (
        "Bed", "Desk", "Dresser", "Drawer", "Cabinet", "SideTable", "Safe", "Ottoman", "DeskLamp",
    ),
    "bathroom": ("Bathtub", "Toilet", "Sink", "Cabinet", "Shelf", "GarbageCan"),
    "study": ("Desk", "Shelf", "Drawer", "ArmChair", "Safe", "DeskLamp"),
    "dining room": ("DiningTable", "SideTable", "Cart", "Cabinet", "Ottoman"),
}  # fmt: skip
"""The fixtures of each type of room. A house has the first 3 to 6 rooms."""

SLOT_WIDTH = 0.24
"""Distance in meters of the centers of two slots; objects are at least 2 cm narrower."""

SHELVES: dict[str, tuple[float, ...]] = {
    "Fridge": (0.55, 1.05),
    "Microwave": (0.95,),
    "Cabinet": (0.45,),
    "Drawer": (0.32,),
    "Safe": (0.25,),
    "GarbageCan": (0.32,),
    "Bathtub": (0.3,),
    "Sink": (0.72,),
}
"""Heights of the surfaces for objects inside; for other types it is ``height``."""

DRAWER_TRAVEL = 0.35
"""Length in meters by which an open drawer moves out."""


def slots_of(kind: str) -> list[tuple[float, float, float]]:
    """Return the local positions (right, back, up) of the slots of a type, in meters.

    The origin is on the floor below the center of the body; right and back are as seen by an agent
    that faces the fixture. The slots of one shelf are ordered from left to right.
    """
    each = FIXTURES[kind]
    if not each.slots:
        return []
    shelves = SHELVES.get(kind, (each.height,))
    row = each.slots // len(shelves)
    back = -each.depth / 2 + min(each.depth / 2, 0.22)
    if kind == "CoffeeMachine":
        back = -0.1
    return [
        ((place - (row - 1) / 2) * SLOT_WIDTH, back, height)
        for height in shelves
        for place in range(row)
    ]
