"""Trains a small convolutional reader that names the detail on a sign of a degraded scene.

The reader takes crops of any size, and resizes them to one size by bilinear interpolation. It has
no other preprocessing, and sees in training what it is given: clean crops, or the crops of one
magnifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from typing_extensions import override

from visenv.envs.mags.world.presets import DETAILS, SCENES
from visenv.types import Pixels

SIDE = 96
"""Side of the reader's input: the largest sign of 24 native pixels, four times as large."""

KINDS = SCENES["degraded"].details
VALUES = [value for kind in KINDS for value in DETAILS[kind].options]

_WIDTHS = (32, 64, 96, 128)
_BATCH = 32
_EPOCHS = 6


class SignReader(nn.Module):
    """Scores all details; only those of the kind that the question asks for are compared."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width in _WIDTHS:
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1)]
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            layers += [nn.Conv2d(width, width, 3, padding=1, groups=width // 16)]
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self.features = nn.Sequential(*layers)
        self.scores = nn.Linear(channels * (SIDE // 2 ** len(_WIDTHS)) ** 2, len(VALUES))

    @override
    def forward(self, crops: torch.Tensor) -> torch.Tensor:
        """Return scores ``[batch, values]`` of crops ``[batch, 3, SIDE, SIDE]``, from 0 to 1."""
        scores: torch.Tensor = self.scores(self.features(crops).flatten(1))
        return scores

    @torch.no_grad()
    def read(self, crops: Sequence[Pixels], kinds: Sequence[str]) -> list[str]:
        """Return the detail of each crop, of the given kind."""
        self.eval()
        read = []
        for start in range(0, len(crops), _BATCH):
            scores = self(batched(crops[start : start + _BATCH]))
            for row, kind in zip(scores, kinds[start : start + _BATCH], strict=True):
                options = DETAILS[kind].options
                places = [VALUES.index(value) for value in options]
                read.append(options[int(row[places].argmax())])
        return read


def batched(crops: Sequence[Pixels]) -> torch.Tensor:
    """Return crops at the reader's size, ``[batch, 3, SIDE, SIDE]``, from 0 to 1."""
    from visenv.opencv import cv2

    sized = [cv2.resize(crop, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR) for crop in crops]
    return torch.from_numpy(np.stack(sized)).permute(0, 3, 1, 2).float() / 255


def train(crops: Sequence[Pixels], values: Sequence[str], seed: int = 0) -> SignReader:
    """Return a reader that was trained on these crops."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    reader = SignReader()
    steps = _EPOCHS * (len(crops) // _BATCH)
    optimizer = torch.optim.AdamW(reader.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, max(1, steps))
    wanted = torch.tensor([VALUES.index(value) for value in values])
    for _ in range(_EPOCHS):
        order = rng.permutation(len(crops))
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            chosen = order[start : start + _BATCH]
            reader.train()
            scores = reader(batched([crops[place] for place in chosen]))
            loss = nn.functional.cross_entropy(scores, wanted[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return reader
