"""Tests the pictures of scenes: grounds, shadows, regions of maps, and things that are covered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from visenv.envs.argos.world.draw import TEXTURES, TINTS, Ground, draw_ground, paint
from visenv.envs.argos.world.presets import IMAGES
from visenv.envs.argos.world.questions import QUESTIONS
from visenv.envs.argos.world.things import FrameSize, Thing, boxes, owners, silhouette

PRESET = IMAGES["default"]
SIZE = FrameSize(60, 40)
BALL = Thing("red", "plain", "ball", "small", 20, 20, 8, 8)


@pytest.mark.parametrize("texture", TEXTURES)
def test_ground_keeps_the_mean_of_its_tint(texture: str) -> None:
    preset = replace(PRESET, grounds=(texture, texture))
    for tint, color in enumerate(TINTS):
        levels = draw_ground(np.random.default_rng(tint), preset, tint).levels
        np.testing.assert_allclose(levels.mean(axis=(0, 1)), color, atol=0.1)
        gray = levels - levels.mean(axis=2, keepdims=True)
        assert np.ptp(gray, axis=(0, 1)).max() < 0.01  # the texture changes no hue
    sheet = draw_ground(np.random.default_rng(0), preset, 0, is_sheet=True).levels
    # A gradient alone has no second difference.
    assert bool(np.abs(np.diff(levels, n=2, axis=0)).max() > 1) is (texture != "plain")
    assert np.abs(np.diff(sheet, n=2, axis=0)).max() < 0.01


def test_shadow_darkens_what_is_below_a_thing_and_not_the_thing() -> None:
    levels = np.full((SIZE.height, SIZE.width, 3), 100, np.float32)
    light, shade = (
        paint((BALL,), SIZE, Ground(levels, shadow), np.random.default_rng(0)).astype(float)
        for shadow in (None, (5, 3))  # 5 pixels below and 3 to the right
    )
    mine = owners((BALL,), SIZE) == 0
    np.testing.assert_array_equal(light[mine], shade[mine])
    rows, columns, inside = silhouette(replace(BALL, x=23, y=25), SIZE)
    shifted = np.zeros_like(mine)
    shifted[rows, columns] = inside
    darker = shade.mean(axis=2) < light.mean(axis=2) - 20
    np.testing.assert_array_equal(darker, shifted & ~mine)
    # The level of the ground is 100 and that of the shadow 72, with noise of at most 4.
    assert np.abs(shade[darker] - 72).max() <= 5


@pytest.mark.parametrize(
    "unseen", [replace(BALL, x=-9), replace(BALL, half_width=4, half_height=4)]
)
def test_thing_that_is_not_seen_has_no_shadow(unseen: Thing) -> None:
    ground = Ground(np.full((SIZE.height, SIZE.width, 3), 100, np.float32), (5, 8))
    with_it, without = (
        paint(things, SIZE, ground, np.random.default_rng(0))
        for things in ((unseen, BALL), (BALL,))
    )
    np.testing.assert_array_equal(with_it, without)


def test_pixels_of_a_region_are_inside_it_and_closest_to_its_center() -> None:
    regions = tuple(
        Thing(color, "plain", "region", "large", x, 20, 12, 10)
        for color, x in (("red", 15), ("blue", 35))
    )
    shown = owners(regions, SIZE)
    assert [int(shown[20, x]) for x in (2, 3, 24, 26, 47, 48)] == [-1, 0, 0, 1, 1, -1]
    assert [int(shown[y, 15]) for y in (9, 10, 30, 31)] == [-1, 0, 0, -1]
    assert boxes(regions, SIZE)[0] == (3, 10, 26, 31)  # at x = 25, the first region wins the tie


@pytest.mark.parametrize("kind", ["count", "color", "material", "relation"])
def test_targets_are_in_front_and_other_things_may_be_covered(kind: str) -> None:
    rng = np.random.default_rng(1)
    extent = FrameSize(PRESET.width, PRESET.height)
    covered = 0
    for _ in range(60):
        asked = QUESTIONS[kind](rng, PRESET)
        shown = owners(asked.things, extent)
        for number, thing in enumerate(asked.things):
            hidden = int(silhouette(thing, extent)[2].sum()) - int((shown == number).sum())
            if thing.shape in asked.targets or thing.name in asked.targets:
                assert hidden == 0
            covered += hidden > 0
    assert covered > 5
