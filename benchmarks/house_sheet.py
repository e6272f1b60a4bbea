"""Draws the contact sheets of House for docs/embodied.md.

    python benchmarks/house_sheet.py docs/images

``house.png`` has places, doors, switches, states, and objects in hand and in others.
``house_objects.png`` has each type of objects, plain, striped and dotted.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from visenv.envs.embodied.world.house import FurnishedHouse, Item
from visenv.envs.embodied.world.items import COLORS, ITEMS, PATTERNS, ItemLook
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import HouseState, ItemPlace
from visenv.envs.embodied.world.tasks import TaskOptions, make_task

SIDE, LARGE, MIDDLE = 160, 400, 96
DOORS = ("Fridge", "Microwave", "Cabinet", "Safe", "Drawer")
SWITCHES = ("DeskLamp", "FloorLamp", "CoffeeMachine", "StoveBurner", "Faucet")
OBJECTS = ("Apple", "Mug", "Bread")
HOLDER = "Bowl"


class Sheet:
    """Collects frames for a contact sheet.

    Args:
        house: The house of the frames.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        self.frames: list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]] = []
        self.turn_to(house)

    def turn_to(self, house: FurnishedHouse) -> None:
        """Continue in another house, in its initial state."""
        self.state = HouseState(house)
        self.renderer = HouseRenderer(house)

    def add(self) -> None:
        self.frames.append(self.renderer.frame(self.state, SIDE, antialias=True))

    def add_middle(self) -> None:
        """Add the middle of a large frame, which shows the object that was found."""
        frame = self.renderer.frame(self.state, LARGE, antialias=True)
        start, end = (LARGE - MIDDLE) // 2, (LARGE + MIDDLE) // 2
        self.frames.append(frame[start:end, start:end])

    def save(self, path: Path, columns: int = 8) -> None:
        missing = -len(self.frames) % columns
        frames = self.frames + [np.zeros_like(self.frames[0])] * missing
        rows = [np.concatenate(frames[start : start + columns], axis=1)
                for start in range(0, len(frames), columns)]  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.concatenate(rows)).save(path, optimize=True)


def house_sheet() -> Sheet:
    """Return the sheet of places and states, from one house."""
    tasks = (make_task(seed, TaskOptions(subset="base", rooms=3)) for seed in range(200))
    house = next(task.house for task in tasks if {*OBJECTS, HOLDER} <= {*task.house.items})
    sheet = Sheet(house)
    state = sheet.state
    for name in DOORS:
        state.go_to(name)
        sheet.add()
        state.open_up(name)
        sheet.add()
    for name in SWITCHES:
        state.go_to(name)
        sheet.add()
        state.turn(name, True)
        sheet.add()
    for name in OBJECTS:
        state.go_to(name)
        state.open.add(state.at)
        state.dirty.discard(name)
        sheet.add()
        spec = house.items[name].type
        able = {"dirty": spec.washed, "hot": spec.heated, "cold": spec.heated,
                "sliced": spec.sliced}  # fmt: skip
        for word in (word for word, can in able.items() if can):
            getattr(state, word).add(name)
            sheet.add()
            getattr(state, word).discard(name)
    state.places[OBJECTS[0]] = ItemPlace(HOLDER, 0)
    state.go_to(OBJECTS[0])
    sheet.add()
    state.pick(HOLDER)
    for name in ("Sofa", "CounterTop", "DiningTable", "Bed"):
        state.go_to(name)
        sheet.add()
    return sheet


def looks_sheet() -> Sheet:
    """Return the sheet of objects: every type on the same table, in three patterns."""
    task = make_task(0, TaskOptions(subset="base", rooms=3))
    sheet = Sheet(task.house)
    table = next(name for name, each in task.house.fixtures.items() if each.kind == "SideTable")
    for number, kind in enumerate(ITEMS):
        for pattern in PATTERNS:
            color = [*COLORS][(number + PATTERNS.index(pattern) * 4) % len(COLORS)]
            item = Item("it", kind, ItemLook(color, pattern, "matte", "large"), yaw=0.4)
            house = replace(task.house, items={"it": item}, places={"it": (table, 0)})
            sheet.turn_to(house)
            sheet.state.go_to("it")
            sheet.add_middle()
    return sheet


def main(folder: str) -> None:
    house_sheet().save(Path(folder) / "house.png")
    looks_sheet().save(Path(folder) / "house_objects.png", columns=12)


if __name__ == "__main__":
    main(sys.argv[1])
