"""Renders a scene at four times its native resolution, and averages it down."""

from __future__ import annotations

import numpy as np

from visenv.types import Pixels
from visenv.worlds.scenes import KINDS as DETAILS
from visenv.worlds.scenes.background import add_grain, paint_background
from visenv.worlds.scenes.details import PANEL, Canvas, engrave
from visenv.worlds.scenes.signs import Sign, draw_plate

from .presets import OVERSAMPLING, SceneDifficulty
from .questions import SceneDraft

LEAVES = ((46, 84, 38), (70, 108, 52), (96, 120, 66))


def paint(rng: np.random.Generator, scenes: SceneDifficulty, scene: SceneDraft) -> Pixels:
    """Return the scene at the rendered resolution, uint8 ``[height, width, 3]``.

    The details are invisible in the view (`visenv.worlds.scenes.details.hide`). They are drawn
    after all plates and leaves, so that nothing covers them.
    """
    side = OVERSAMPLING * scenes.side
    pixels = paint_background(rng, side, side, scenes.clutter)
    for sign in scene.signs:
        draw_plate(pixels, sign, scenes.frame, scenes.rendered_unit, PANEL)
        if scenes.occluders:
            _draw_leaves(rng, pixels, sign, scenes)
    for sign, value in zip(scene.signs, scene.values, strict=True):
        left, top, right, bottom = sign.panel.native(scenes.rendered_unit)
        canvas = Canvas(right - left, scenes.rendered_unit, scenes.stripe_period)
        ink = DETAILS[scene.detail].draw(rng, value, canvas)
        pixels[top:bottom, left:right] = engrave(rng, ink, scenes.rendered_unit, 1.0)
    add_grain(rng, pixels, scenes.grain)
    return pixels


def to_native(rendered: Pixels) -> Pixels:
    """Average areas down to the native resolution; the noise keeps the rounding unbiased."""
    from visenv.opencv import cv2

    height, width = (side // OVERSAMPLING for side in rendered.shape[:2])
    return np.asarray(cv2.resize(rendered, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


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
