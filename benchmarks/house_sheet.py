"""Draws the contact sheet of House for docs/embodied.md: places, doors, switches, states.

python benchmarks/house_sheet.py docs/images/house.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from visenv.envs.embodied.world.house import House
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import State
from visenv.envs.embodied.world.tasks import TaskOptions, make_task

SIDE, COLUMNS = 160, 8
DOORS = ("Fridge", "Microwave", "Cabinet", "Safe", "Drawer")
SWITCHES = ("DeskLamp", "FloorLamp", "CoffeeMachine", "StoveBurner", "Faucet")
OBJECTS = ("Apple", "Mug", "Bread")


class Sheet:
    """Collects frames of one house."""

    def __init__(self, house: House) -> None:
        self.state = State(house)
        self.renderer = HouseRenderer(house)
        self.frames: list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]] = []

    def add(self) -> None:
        self.frames.append(self.renderer.frame(self.state, SIDE, antialias=True))

    def save(self, path: Path) -> None:
        missing = -len(self.frames) % COLUMNS
        frames = self.frames + [np.zeros_like(self.frames[0])] * missing
        rows = [np.concatenate(frames[start : start + COLUMNS], axis=1)
                for start in range(0, len(frames), COLUMNS)]  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.concatenate(rows)).save(path, optimize=True)


def main(path: str) -> None:
    tasks = (make_task(seed, TaskOptions(subset="base", rooms=3)) for seed in range(200))
    house = next(task.house for task in tasks if {*OBJECTS} <= {*task.house.items})
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
    state.pick(OBJECTS[-1])
    for name in ("Sofa", "CounterTop", "DiningTable", "Bed"):
        state.go_to(name)
        sheet.add()
    sheet.save(Path(path))


if __name__ == "__main__":
    main(sys.argv[1])
