"""Trains a small network on rendered crops of House, to test whether states and looks are visible.

    python benchmarks/house_classifier.py > benchmarks/results/2026-11-23-house_classifier.txt

Each object is shown as found, some with a state (dirty, hot, cold, sliced), in hand, or in another
object; each appliance is open or closed, on or off. A crop contains the pixels with its rendered id
in a frame of 224 px, with a margin. The test houses are unseen houses of the training split. For a
state, the table shows the recall of the samples with it, the recall of those without it, and their
mean.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from typing_extensions import override

from visenv.envs.embodied.world.house import FurnishedHouse
from visenv.envs.embodied.world.items import COLORS, ITEMS, PATTERNS
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import OK, HouseState, ItemPlace
from visenv.envs.embodied.world.tasks import TaskOptions, make_task
from visenv.types import Pixels

SIDE, CROP = 224, 48
CLASSES: dict[str, list[str]] = {
    "type": [*ITEMS], "color": [*COLORS], "pattern": [*PATTERNS]}  # fmt: skip
ABILITIES = {"dirty": "washed", "hot": "heated", "cold": "heated", "sliced": "sliced"}
STATES = [*ABILITIES, "held", "contained", "open", "on"]
HEADS = {name: len(each) for name, each in CLASSES.items()} | dict.fromkeys(STATES, 2)
UNASKED = -1


class Crop(NamedTuple):
    """Holds a crop, uint8 ``[48, 48, 3]``, and the right class of each head."""

    pixels: Pixels
    labels: list[int]


class Photographer:
    """Makes crops of one house.

    Args:
        house: The house.
        seed: Seed of the states that are shown.
    """

    def __init__(self, house: FurnishedHouse, seed: int) -> None:
        self.house = house
        self.rng = np.random.default_rng(seed)
        self.renderer = HouseRenderer(house)

    def crops(self) -> Iterator[Crop]:
        """Yield crops of all objects and of all appliances."""
        for name in self.house.items:
            yield from self._object(name)
        for name, fixture in self.house.fixtures.items():
            if fixture.type.opening or fixture.type.switch:
                yield from self._appliance(name)

    def _state(self) -> HouseState:
        """Return the first state with all doors open and nothing dirty."""
        state = HouseState(self.house)
        state.open = {name for name, each in self.house.fixtures.items() if each.type.opening}
        state.dirty.clear()
        return state

    def _object(self, name: str) -> Iterator[Crop]:
        state, item = self._state(), self.house.items[name]
        labels = dict.fromkeys([*ABILITIES, "held", "contained"], 0)
        able = [word for word, ability in ABILITIES.items() if getattr(item.type, ability)]
        if able and self.rng.random() < 0.6:
            word = str(self.rng.choice(able))
            getattr(state, word).add(name)
            labels[word] = 1
        where = self.rng.random()
        state.go_to(name)
        if where < 0.15:
            assert state.pick(name) == OK
            state.go_to(str(self.rng.choice([*self.house.fixtures])))
            labels["held"] = 1
        elif where < 0.35 and (holder := self._holder(state, name)):
            state.places[name] = ItemPlace(holder, 0)
            state.go_to(name)
            labels["contained"] = 1
        look = item.look
        for head, word in (("type", item.kind), ("color", look.color), ("pattern", look.pattern)):
            labels[head] = CLASSES[head].index(word)
        yield from self._cut(state, name, labels)

    def _holder(self, state: HouseState, name: str) -> str:
        """Return an empty object that can contain others, ``""`` if there is none."""
        holders = [other for other, each in self.house.items.items()
                   if each.type.holds and other != name]  # fmt: skip
        return str(self.rng.choice(holders)) if holders else ""

    def _appliance(self, name: str) -> Iterator[Crop]:
        spec = self.house.fixtures[name].type
        state, labels = HouseState(self.house), dict[str, int]()
        state.go_to(name)
        if spec.opening:
            labels["open"] = int(self.rng.integers(2))
            if labels["open"]:
                assert state.open_up(name) == OK
        if spec.switch:
            labels["on"] = int(self.rng.integers(2)) * (1 - labels.get("open", 0))
            if labels["on"]:
                assert state.turn(name, True) == OK
        yield from self._cut(state, name, labels)

    def _cut(self, state: HouseState, name: str, labels: dict[str, int]) -> Iterator[Crop]:
        """Yield the crop, unless the object is not visible."""
        box = self.renderer.visible(state, SIDE).get(name)
        if box is None:
            return
        left, top, right, bottom = box
        margin = 3 + max(right - left, bottom - top) // 8
        frame = self.renderer.frame(state, SIDE)
        cut = frame[max(0, top - margin) : bottom + margin, max(0, left - margin) : right + margin]
        pixels = np.asarray(cv2.resize(cut, (CROP, CROP), interpolation=cv2.INTER_AREA), np.uint8)
        yield Crop(pixels, [labels.get(head, UNASKED) for head in HEADS])


class Network(nn.Module):
    """Consists of four convolutions and one linear head for each question."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for wide, wider in ((3, 32), (32, 64), (64, 128), (128, 128)):
            layers += [nn.Conv2d(wide, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3))
        self.heads = nn.ModuleList(nn.Linear(128 * 9, classes) for classes in HEADS.values())

    @override
    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        features = self.body(images)  # [n, 1152]
        return [head(features) for head in self.heads]


def tensors(seeds: range) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images, float32 ``[n, 3, 48, 48]`` from -0.5 to 0.5, and labels, ``[n, heads]``."""
    houses = ((make_task(seed, TaskOptions(rooms=3)).house, seed) for seed in seeds)
    crops = [crop for pair in houses for crop in Photographer(*pair).crops()]
    images = torch.from_numpy(np.stack([crop.pixels for crop in crops]))  # [n, 48, 48, 3]
    return images.permute(0, 3, 1, 2).float() / 255 - 0.5, torch.tensor([c.labels for c in crops])


def train(network: Network, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """Train with AdamW and a one-cycle schedule."""
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=0.01)
    steps = epochs * (len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(order) - 63, 64):
            batch = order[start : start + 64]
            pairs = zip(network(images[batch]), labels[batch].T, strict=True)
            losses = [F.cross_entropy(*pair, ignore_index=UNASKED, reduction="sum")
                      for pair in pairs]  # fmt: skip
            optimizer.zero_grad()
            (torch.stack(losses).sum() / len(batch)).backward()
            optimizer.step()
            schedule.step()


def report(outputs: list[torch.Tensor], labels: torch.Tensor) -> None:
    """Print the accuracy of each head, and the types with the most errors."""
    for place, (head, output) in enumerate(zip(HEADS, outputs, strict=True)):
        asked = labels[:, place] != UNASKED
        truth, right = labels[asked, place], output[asked].argmax(1) == labels[asked, place]
        if head in STATES:
            with_it, without = (right[truth == each].float().mean() for each in (1, 0))
            mean = (with_it + without) / 2
            print(f"{head:10} {mean:6.1%}  {with_it:6.1%} of {int((truth == 1).sum())} with it, "
                  f"{without:6.1%} of {int((truth == 0).sum())} without")  # fmt: skip
            continue
        wrong = Counter(CLASSES["type"][kind] for kind in labels[asked, 0][~right].tolist())
        print(f"{head:10} {right.float().mean():6.1%}  of {len(truth)}; most errors: "
              + ", ".join(f"{kind} {count}" for kind, count in wrong.most_common(6)))  # fmt: skip


def main(houses: int = 110, held_out: int = 30, epochs: int = 15) -> None:
    start = time.process_time()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = Network()
    images, labels = tensors(range(houses))
    print(f"{len(images)} crops of {houses} houses", flush=True)
    train(network, images, labels, epochs)
    network.eval()
    images, labels = tensors(range(10_000, 10_000 + held_out))
    print(f"{len(images)} crops of {held_out} unseen houses")
    with torch.no_grad():
        report(network(images), labels)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
