"""Renders a scene at four times its native resolution, and averages it down."""

from __future__ import annotations

import numpy as np

from visenv.types import Pixels
from visenv.worlds.scenes.background import add_grain, surface
from visenv.worlds.scenes.details import PANEL, Canvas, Ink, engrave
from visenv.worlds.scenes.signs import Sign, draw_plate

from .degrade import degrade
from .presets import DETAILS, OVERSAMPLING, SceneDifficulty
from .questions import SceneDraft

_SHINE = 0.4
"""Contrast of a material behind a panel, as a share of its contrast beside it."""

LEAVES = ((46, 84, 38), (70, 108, 52), (96, 120, 66))


def paint(rng: np.random.Generator, scenes: SceneDifficulty, scene: SceneDraft) -> Pixels:
    """Return the scene at the rendered resolution, uint8 ``[height, width, 3]``.

    Without degradation, the details are invisible in the view
    (`visenv.worlds.scenes.details.hide`). They are drawn after all plates and leaves, so that
    nothing covers them. In degraded scenes the surface shines through the panels.
    """
    side = OVERSAMPLING * scenes.side
    pixels = surface(rng, scenes.material, side, scenes.clutter)
    behind = [pixels[_panel(sign, scenes)].copy() for sign in scene.signs]
    for sign in scene.signs:
        draw_plate(pixels, sign, scenes.frame, scenes.rendered_unit, PANEL)
        if scenes.occluders:
            _draw_leaves(rng, pixels, sign, scenes)
    for sign, value, material in zip(scene.signs, scene.values, behind, strict=True):
        canvas = Canvas(len(material), scenes.rendered_unit, scenes.stripe_period)
        ink = DETAILS[scene.detail].draw(rng, value, canvas)
        pixels[_panel(sign, scenes)] = (
            engrave(rng, ink, scenes.rendered_unit, 1.0)
            if scenes.degradation is None
            else _on_material(ink, material)
        )
    add_grain(rng, pixels, scenes.grain)
    return pixels


def native_image(rng: np.random.Generator, scenes: SceneDifficulty, rendered: Pixels) -> Pixels:
    """Return the scene at its native resolution, degraded if the difficulty says so."""
    native = to_native(rendered)
    degradation = scenes.degradation
    return native if degradation is None else degrade(rng, native, degradation)


def to_native(rendered: Pixels) -> Pixels:
    """Average areas down to the native resolution; the noise keeps the rounding unbiased."""
    from visenv.opencv import cv2

    height, width = (side // OVERSAMPLING for side in rendered.shape[:2])
    return np.asarray(cv2.resize(rendered, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _panel(sign: Sign, scenes: SceneDifficulty) -> tuple[slice, slice]:
    """Return the rows and columns of a panel in the rendered scene."""
    left, top, right, bottom = sign.panel.native(scenes.rendered_unit)
    return slice(top, bottom), slice(left, right)


def _on_material(ink: Ink, material: Pixels) -> Pixels:
    """Return a panel with ink, through which a material of little contrast shines."""
    texture = material.astype(np.float32) - material.mean((0, 1), dtype=np.float32)
    return np.asarray(np.clip(PANEL + _SHINE * texture + ink, 0, 255), np.uint8)


def _draw_leaves(
    rng: np.random.Generator, pixels: Pixels, sign: Sign, scenes: SceneDifficulty
) -> None:
    """Cover corners of a sign with leaves, as wide as the margin around the panel."""
    from visenv.opencv import cv2

    left, top, right, bottom = sign.box.native(scenes.rendered_unit)
    reach = sign.panel.native(scenes.rendered_unit)[0] - left
    corners = [(left, top), (right, top), (left, bottom), (right, bottom)]
    for place in rng.permutation(4)[: int(rng.integers(1, 4))]:
        x, y = corners[int(place)]
        for _ in range(6):
            middle = (x + int(rng.integers(-reach, reach) // 2), y + int(rng.integers(-reach, 1)))
            axes = (max(2, reach // 3), max(2, reach // 2))
            leaf = LEAVES[int(rng.integers(len(LEAVES)))]
            angle = float(rng.uniform(0, 180))
            cv2.ellipse(pixels, middle, axes, angle, 0, 360, leaf, -1, cv2.LINE_AA)
