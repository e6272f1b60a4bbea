"""Tests the teacher of MagsZoom: its boxes, and its answers from the crops."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.mags.env import BoxesBeside, MagsZoom
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.errors import ConfigurationError
from visenv.types import Image, QuestionTruth, Sample

FIRST, SECOND = (75, 75, 141, 141), (219, 3, 285, 69)
"""Two signs of a scene of 288 px, which is shown at 96 px: at (25, 25) and (73, 1), 22 px wide."""


def begun(kind: str, answer: str, truth: Any) -> MagsZoom:
    image = Image.from_pixels(np.zeros((288, 288, 3), np.uint8))
    sample = Sample("s", "Which?", (image,), (answer,), kind, truth)
    env = gym.make("visenv/MagsZoom-v0", data=[sample], preset="tiny", magnifier="none").unwrapped
    assert isinstance(env, MagsZoom)
    env.reset(seed=0)
    return env


def counting() -> MagsZoom:
    return begun(
        "counting", "2", MagsTruth(target_boxes=(FIRST, SECOND), evidence_boxes=(FIRST, SECOND))
    )


def attribute() -> MagsZoom:
    return begun("attribute", "red", MagsTruth(target_boxes=(FIRST,), evidence_boxes=(FIRST,)))


def boxes(env: MagsZoom, teacher: BoxesBeside) -> Any:
    (call,) = teacher.turn(env, np.random.default_rng(0)).calls
    return call.arguments["boxes"]


def answer(env: MagsZoom, *zoomed: list[int]) -> str | None:
    """Return the teacher's answer after these boxes."""
    env.step(f"<think>look <zoom>{[*zoomed]}</zoom></think>")
    return BoxesBeside().turn(env, np.random.default_rng(0)).answer


def test_boxes_are_moved_by_the_error_in_their_sides_but_not_out_of_the_image() -> None:
    # The boxes of the oracle are cells of 24 px; the error is a third of a side on each axis.
    teacher = BoxesBeside(strength=0.5, offset=(2 / 3, -2 / 3), noise=0.0, extra=0)
    # The second box is in the upper right corner and is moved to the left and down.
    assert boxes(counting(), teacher) == [[32, 16, 56, 40], [64, 8, 88, 32]]
    # The first box has 24 px to the left and 48 px to the right.
    teacher = BoxesBeside(offset=(-2.5, 0.0), noise=0.0, extra=0)
    assert boxes(counting(), teacher)[0] == [72, 24, 96, 48]


def test_each_box_has_an_error_of_its_own() -> None:
    errors = 0.5 * np.random.default_rng(0).standard_normal((2, 2))
    x, y = (8 * round(3 * error) for error in errors[0])  # 24 px, rounded to 8 px
    u, v = (8 * round(3 * error) for error in errors[1])
    u, v = -abs(u), abs(v)  # the second box is in the upper right corner
    moved = boxes(counting(), BoxesBeside(offset=(0.0, 0.0), noise=0.5, extra=0))
    assert moved == [[24 + x, 24 + y, 48 + x, 48 + y], [72 + u, v, 96 + u, 24 + v]]


def test_strength_scales_the_number_of_further_boxes() -> None:
    for strength, count in ((1.0, 2), (2.0, 4)):
        drawn = boxes(
            attribute(), BoxesBeside(strength=strength, offset=(0.0, 0.0), noise=0, extra=2)
        )
        assert drawn[0] == [24, 24, 48, 48]
        assert len(drawn) == 1 + count
        for left, top, right, bottom in drawn:
            assert (right - left, bottom - top) == (24, 24)
            assert min(left, top) >= 0
            assert max(right, bottom) <= 96


def test_teacher_counts_the_objects_in_its_crops() -> None:
    assert answer(counting(), [24, 24, 48, 48], [72, 0, 96, 24]) == "2"
    assert answer(counting(), [24, 24, 48, 48], [64, 0, 88, 24]) == "1"
    assert answer(counting(), [0, 0, 24, 24]) == "0"


def test_teacher_gives_up_unless_its_crops_contain_the_object() -> None:
    assert answer(attribute(), [24, 24, 48, 48]) == "red"
    assert answer(attribute(), [32, 24, 56, 48]) == "unknown"


def test_teacher_of_a_row_without_signs_answers() -> None:
    assert answer(begun("attribute", "red", QuestionTruth()), [0, 0, 24, 24]) == "red"


def test_number_of_further_boxes_is_not_negative() -> None:
    with pytest.raises(ConfigurationError, match="extra must be 0 or more"):
        BoxesBeside(extra=-1)
