"""Defines sizes and kinds of procedural scenes and videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .things import COLORS, SHAPES

Split = Literal["train", "ood"]

SHORTCUT_RATE = 0.9
"""Share of training scenes in which the tint of the background matches the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldPreset:
    """Holds the sizes, kinds and numbers of a world.

    Attributes:
        width: Width of a frame, native pixels.
        height: Height of a frame, native pixels.
        kinds: The kinds of questions.
        radius: Half the side of a small and of a large thing, native pixels.
        distractors: Minimum and maximum number of things that the question is not about.
        frames: Minimum and maximum number of frames of a video.
        step: Seconds from frame to frame.
        colors: The colors of things.
        shapes: The shapes of things.
        grounds: The textures of the ground, keys of `visenv.envs.argos.world.draw.TEXTURES`.
        shadows: Whether things have shadows.
    """

    width: int
    height: int
    kinds: tuple[str, ...]
    radius: tuple[int, int]
    distractors: tuple[int, int] = (1, 3)
    frames: tuple[int, int] = (24, 32)
    step: float = 0.25
    colors: tuple[str, ...] = tuple(COLORS)
    shapes: tuple[str, ...] = SHAPES
    grounds: tuple[str, ...] = ("plain", "planks", "tiles", "grass", "fabric")
    shadows: bool = True


IMAGE_KINDS = ("count", "color", "material", "relation", "depth", "absent", "chart", "map")
VIDEO_KINDS = ("order", "duration", "count", "meeting", "change", "speed", "hidden")

IMAGES = {
    "default": WorldPreset(width=448, height=336, kinds=IMAGE_KINDS, radius=(24, 38)),
    "tiny": WorldPreset(
        width=96,
        height=96,
        kinds=("color",),
        radius=(13, 17),
        distractors=(0, 0),
        shapes=SHAPES[:4],
        grounds=("plain",),
        shadows=False,
    ),
}
VIDEOS = {
    "default": WorldPreset(width=224, height=168, kinds=VIDEO_KINDS, radius=(14, 20)),
    "tiny": WorldPreset(
        width=48,
        height=48,
        kinds=("change", "order", "speed"),
        radius=(6, 8),
        distractors=(0, 0),
        frames=(12, 12),
        shapes=SHAPES[:4],
        grounds=("plain",),
        shadows=False,
    ),
}
