"""Tests that `render` shows the question, and the points and boxes of the policy."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.drawing import annotated
from visenv.types import Image

SPOT, FRAME = (255, 45, 111), (255, 0, 255)


def count(pixels: Any, color: tuple[int, int, int]) -> int:
    return int((np.asarray(pixels) == color).all(-1).sum())


@pytest.mark.parametrize("name", ["ArgosImage", "ArgosVideo"])
def test_points_and_question_are_shown(name: str) -> None:
    env = gym.make(f"visenv/{name}-v0", render_mode="rgb_array")
    base: Any = env.unwrapped
    assert base.render().shape == (1, 1, 3)
    env.reset(seed=0)
    before: Any = env.render()
    assert before.dtype == np.uint8
    assert before.shape[0] > base.store.images["image_1"].size[1]  # a strip with the question
    env.step(base.grammar.compose(base.oracle_turn()))
    assert count(env.render(), SPOT) > count(before, SPOT) + 12


def test_boxes_and_question_are_shown() -> None:
    env = gym.make("visenv/MagsZoom-v0", magnifier="none", render_mode="rgb_array")
    base: Any = env.unwrapped
    env.reset(seed=0)
    before: Any = env.render()
    env.step(base.grammar.compose(base.oracle_turn()))
    after: Any = env.render()
    assert after.shape == before.shape
    assert count(after, FRAME) > count(before, FRAME) + 50


def test_marks_are_at_their_places_below_the_title() -> None:
    image = Image.from_pixels(np.zeros((100, 200, 3), np.uint8))
    plain = annotated(image, points=[(50, 40, "")], boxes=[(100, 10, 140, 60), (-5, -5, 900, 900)])
    assert plain.shape == (100, 200, 3)
    assert tuple(plain[40, 50]) == SPOT
    assert tuple(plain[10, 100]) == tuple(plain[59, 139]) == FRAME
    assert tuple(plain[60, 140]) == (0, 0, 0)
    titled = annotated(image, "What? " * 1000, points=[(50, 40, "x" * 999)])
    strip = titled.shape[0] - 100
    assert titled.shape[1] == 240
    assert 10 < strip < 200
    assert tuple(titled[strip + 40, 50]) == SPOT
    assert count(image.pixels, SPOT) == 0
