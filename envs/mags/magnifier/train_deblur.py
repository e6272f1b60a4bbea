"""Trains ``small-deblur``: ``python -m visenv.envs.mags.magnifier.train_deblur``.

The network learns to undo the degradation of the scenes ``"degraded"``, whose kernel, noise and
JPEG quality are known. Its pictures are not those of the world: dead-leaves images with random
polygons, strokes and arcs. They contain no silhouette, no letter, no digit and no photograph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from typing_extensions import override

from visenv.opencv import cv2
from visenv.types import Pixels

from ..world.degrade import degrade
from ..world.presets import SCENES
from ..world.render import to_native
from .backend import PACKAGED
from .small import SCALE
from .train_small import dead_leaves
from .training import Batch, Training

_SIDE = 24
"""Side of a native patch, pixels."""


@dataclass(frozen=True)
class TrainDeblur(Training):
    """Train the network that undoes a known degradation.

    Attributes:
        pictures: Number of pictures of 512 px.
    """

    out: Path = PACKAGED["small-deblur"]
    steps: int = 3000
    pictures: int = 300

    @override
    def batches(self, rng: np.random.Generator) -> Callable[[], Batch]:
        pairs = [_pair(rng) for _ in range(self.pictures)]
        return lambda: _batch(rng, pairs, self.batch)


def drawing(rng: np.random.Generator) -> Pixels:
    """Return a dead-leaves image of 512 px with sharp shapes of one color on it."""
    pixels = dead_leaves(rng)
    for _ in range(70):
        _shape(rng, pixels)
    return pixels


def _shape(rng: np.random.Generator, pixels: Pixels) -> None:
    """Draw a patch of one color with a polygon, a stroke or an arc of another one on it."""
    ground, ink = ([int(level) for level in rng.integers(0, 256, 3)] for _ in range(2))
    if rng.random() < 0.6:  # gray on gray
        ground, ink = ([int(rng.integers(0, 256))] * 3 for _ in range(2))
    middle, radius = rng.uniform(0, pixels.shape[0], 2), rng.uniform(8, 36)
    corners = (middle + radius * np.array([[-1.2, -1.2], [1.2, 1.2]])).astype(int).tolist()
    if rng.random() < 0.7:
        cv2.rectangle(pixels, corners[0], corners[1], ground, -1)
    for _ in range(int(rng.integers(1, 4))):
        points = middle + radius * rng.uniform(-1, 1, (int(rng.integers(3, 8)), 2))
        fixed = np.round(points * 16).astype(np.int32)
        width = int(rng.integers(3, 14))
        form = rng.random()
        if form < 0.4:
            cv2.fillPoly(pixels, [fixed], ink, cv2.LINE_AA, 4)
        elif form < 0.7:
            cv2.polylines(pixels, [fixed], False, ink, width, cv2.LINE_AA, 4)
        else:
            axes = (radius * rng.uniform(0.2, 0.9, 2)).astype(int).tolist()
            turn, first, sweep = rng.uniform(0, 360), rng.uniform(0, 360), rng.uniform(90, 360)
            place = points[0].astype(int).tolist()
            cv2.ellipse(pixels, place, axes, turn, first, first + sweep, ink, width, cv2.LINE_AA)


def _pair(rng: np.random.Generator) -> tuple[Pixels, Pixels]:
    """Return a degraded picture of 128 px, and the drawing of 512 px."""
    degradation = SCENES["degraded"].degradation
    assert degradation is not None
    high = drawing(rng)
    return degrade(rng, to_native(high), degradation), high


def _batch(rng: np.random.Generator, pairs: list[tuple[Pixels, Pixels]], count: int) -> Batch:
    """Return degraded and true patches, rotated and mirrored."""
    lows: list[Pixels] = []
    highs: list[Pixels] = []
    for place in rng.integers(len(pairs), size=count):
        low, high = pairs[place]
        left, top = (int(edge) for edge in rng.integers(0, low.shape[0] - _SIDE + 1, 2))
        turn, mirrored = int(rng.integers(4)), rng.random() < 0.5
        for patches, pixels, scale in ((lows, low, 1), (highs, high, SCALE)):
            rows = slice(scale * top, scale * (top + _SIDE))
            columns = slice(scale * left, scale * (left + _SIDE))
            patch = np.rot90(pixels[rows, columns], turn)
            patches.append((patch[:, ::-1] if mirrored else patch).transpose(2, 0, 1))
    return _levels(lows), _levels(highs)


def _levels(patches: list[Pixels]) -> torch.Tensor:
    return torch.from_numpy(np.stack(patches).astype(np.float32) / 255)


if __name__ == "__main__":
    tyro.cli(TrainDeblur).run()
