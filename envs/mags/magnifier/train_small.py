"""Trains the small super-resolution network: ``python -m visenv.envs.mags.magnifier.train_small``.

The network learns from rendered scenes of the family's world and from "dead leaves" images
(overlapping shapes whose sizes follow a power law, after Lee, Mumford and Huang, IJCV 2001), which
have the edge statistics of photographs. No photograph is used. Each patch is averaged down by 4;
the loss is the mean absolute error of the enlarged patch. Training takes about 25 minutes on one
thread.
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

from ..world import MagsWorld
from .backend import PACKAGED
from .small import SCALE
from .training import Batch, Training

_SHARP = ("simple", "complex", "tiny", "tiny-complex")
"""The difficulties whose scenes are not degraded."""

_PATCH = 96
"""Side of a high-resolution patch, pixels."""


@dataclass(frozen=True)
class TrainSmall(Training):
    """Train the small super-resolution network.

    Attributes:
        scenes: Number of scenes of each difficulty.
        leaves: Number of dead-leaves images.
    """

    out: Path = PACKAGED["small"]
    steps: int = 6000
    scenes: int = 60
    leaves: int = 160

    @override
    def batches(self, rng: np.random.Generator) -> Callable[[], Batch]:
        pool = [
            *(patch for name in _SHARP for patch in scene_patches(rng, name, self.scenes)),
            *(patch for _ in range(self.leaves) for patch in cut(rng, dead_leaves(rng), 16)),
        ]
        return lambda: _batch(
            rng, [pool[place] for place in rng.integers(len(pool), size=self.batch)]
        )


def scene_patches(rng: np.random.Generator, scenes: str, count: int) -> list[Pixels]:
    """Return patches of rendered scenes, most of them of signs."""
    world = MagsWorld(scenes)
    patches: list[Pixels] = []
    for _ in range(count):
        sample, rendered = world.pair(rng)
        patches += cut(rng, rendered, 4)
        for sign in sample.ground_truth.signs:
            left, top, right, bottom = (int(SCALE * edge) for edge in sign.box)
            across = max(0, left - _PATCH // 2), max(1, right - _PATCH // 2)
            down = max(0, top - _PATCH // 2), max(1, bottom - _PATCH // 2)
            for _ in range(6):
                corner = int(rng.integers(*across)), int(rng.integers(*down))
                patches.append(_patch(rendered, *corner))
    return patches


def dead_leaves(rng: np.random.Generator, side: int = 512) -> Pixels:
    """Return an image of overlapping shapes, from large ones to ones of 3 pixels."""
    pixels = np.empty((side, side, 3), np.uint8)
    pixels[:] = rng.integers(0, 256, 3)
    radii = np.sort(np.clip(1.5 / rng.random(1200) ** 0.6, 1.5, side / 4))[::-1]
    for radius in radii.tolist():
        middle = rng.uniform(0, side, 2)
        color = [int(level) for level in rng.integers(0, 256, 3)]
        if rng.random() < 0.5:
            place = (int(middle[0]), int(middle[1]))
            axes = (max(1, int(radius)), max(1, int(radius * rng.uniform(0.3, 1))))
            cv2.ellipse(pixels, place, axes, rng.uniform(0, 180), 0, 360, color, -1, cv2.LINE_AA)
        else:
            size = 2 * radius * rng.uniform(0.2, 1, 2)
            turned = (middle.tolist(), size.tolist(), float(rng.uniform(0, 90)))
            corners = np.round(16 * cv2.boxPoints(turned)).astype(np.int32)
            cv2.fillConvexPoly(pixels, corners, color, cv2.LINE_AA, 4)
    texture = rng.normal(0, rng.uniform(0, 6), pixels.shape)
    soft = cv2.GaussianBlur(pixels, (0, 0), float(rng.uniform(0.3, 1.6)))
    return np.clip(soft + cv2.GaussianBlur(texture, (0, 0), 0.8), 0, 255).astype(np.uint8)


def cut(rng: np.random.Generator, pixels: Pixels, count: int) -> list[Pixels]:
    """Return patches at random positions."""
    room = pixels.shape[0] - _PATCH
    return [_patch(pixels, *(int(edge) for edge in rng.integers(0, room, 2))) for _ in range(count)]


def _patch(pixels: Pixels, left: int, top: int) -> Pixels:
    left = min(left, pixels.shape[1] - _PATCH) // SCALE * SCALE
    top = min(top, pixels.shape[0] - _PATCH) // SCALE * SCALE
    return np.array(pixels[top : top + _PATCH, left : left + _PATCH])


def _batch(rng: np.random.Generator, patches: list[Pixels]) -> Batch:
    """Return low- and high-resolution batches of rotated and mirrored patches."""
    turned = [
        np.rot90(patch[:, ::-1] if rng.random() < 0.5 else patch, int(rng.integers(4)))
        for patch in patches
    ]
    high = np.stack([patch.transpose(2, 0, 1) for patch in turned])  # [batch, 3, 4 side, 4 side]
    side = _PATCH // SCALE
    # [batch, 3, side, 4, side, 4], averaged to [batch, 3, side, side].
    averaged = high.reshape(*high.shape[:2], side, SCALE, side, SCALE).mean((3, 5))
    low = np.round(averaged).astype(np.float32) / 255
    return torch.from_numpy(low), torch.from_numpy(high.astype(np.float32) / 255)


if __name__ == "__main__":
    tyro.cli(TrainSmall).run()
