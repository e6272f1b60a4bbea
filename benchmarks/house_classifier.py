"""Trains a small network on rendered crops of objects: can their looks and states be told apart?

    python benchmarks/house_classifier.py > benchmarks/results/2026-11-23-house_classifier.txt

Each object is found, some with a state (dirty, hot, cold, sliced), and cut out of a frame of 224 px
by its rendered ids. The test houses are unseen ones of the training split.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import cv2
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from typing_extensions import override

from visenv.envs.embodied.world.house import House
from visenv.envs.embodied.world.items import COLORS, ITEMS, PATTERNS
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import State
from visenv.envs.embodied.world.tasks import TaskOptions, make_task

SIDE, CROP = 224, 48
KINDS, HUES = list(ITEMS), list(COLORS)
STATES = {"dirty": "washed", "hot": "heated", "cold": "heated", "sliced": "sliced"}
HEADS = {"type": len(KINDS), "color": len(HUES), "pattern": len(PATTERNS)} | dict.fromkeys(
    STATES, 2
)


def crops(seeds: range) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Yield crops, uint8 ``[48, 48, 3]``, with the index of the class of each head."""
    for seed in seeds:
        house = make_task(seed, TaskOptions(rooms=3)).house
        rng = np.random.default_rng(seed)
        yield from _crops_of(house, rng)


def _crops_of(house: House, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, list[int]]]:
    renderer, state = HouseRenderer(house), State(house)
    state.open = {name for name, each in house.fixtures.items() if each.type.opening}
    for name, item in house.items.items():
        state.go_to(name)
        state.dirty.discard(name)
        able = [word for word, ability in STATES.items() if getattr(item.type, ability)]
        chosen = rng.choice(able) if able and rng.random() < 0.6 else ""
        if chosen:
            getattr(state, chosen).add(name)
        box = renderer.visible(state, SIDE).get(name)
        if box is not None:
            left, top, right, bottom = box
            frame = renderer.frame(state, SIDE)
            crop = frame[max(0, top - 3) : bottom + 3, max(0, left - 3) : right + 3]
            look = item.look
            labels = [KINDS.index(item.kind), HUES.index(look.color), PATTERNS.index(look.pattern)]
            yield cv2.resize(crop, (CROP, CROP)), labels + [int(chosen == word) for word in STATES]
        for word in STATES:
            getattr(state, word).discard(name)


class Network(nn.Module):
    """Four convolutions and one linear head for each question."""

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
        features = self.body(images)
        return [head(features) for head in self.heads]


def tensors(seeds: range) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images, float32 ``[n, 3, 48, 48]`` from -0.5 to 0.5, and labels, ``[n, heads]``."""
    images, labels = zip(*crops(seeds), strict=True)
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255 - 0.5
    return pixels, torch.tensor(labels)


def main(houses: int = 120, held_out: int = 20, epochs: int = 30) -> None:
    torch.manual_seed(0)
    images, labels = tensors(range(houses))
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=0.01)
    steps = epochs * (len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(order) - 63, 64):
            batch = order[start : start + 64]
            outputs = network(images[batch])
            targets = labels[batch].T
            loss = torch.stack(
                [F.cross_entropy(*pair) for pair in zip(outputs, targets, strict=True)]
            ).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    test_images, test_labels = tensors(range(10_000, 10_000 + held_out))
    with torch.no_grad():
        outputs = network(test_images)
    print(f"{len(images)} crops of {houses} houses; {len(test_images)} of {held_out} unseen ones")
    for place, (head, output) in enumerate(zip(HEADS, outputs, strict=True)):
        right = (output.argmax(1) == test_labels[:, place]).float()
        shown = test_labels[:, place] == 1
        recall = f", {right[shown].mean():.1%} of those that are" if head in STATES else ""
        print(f"{head:8} {right.mean():6.1%}{recall}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
