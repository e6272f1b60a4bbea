"""Tests the teacher of ZoomVQA: the place of its look, its answers, and its success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401  (registers the ids)
from visenv.envs.zoom_vqa import ZoomVQA
from visenv.envs.zoom_vqa.env import LooksBeside
from visenv.policies.teacher import TeacherPolicy
from visenv.rollout import Collector, EpisodeSpec
from visenv.types import Answered, Episode, Image, QuestionTruth, Sample, ToolCalled


def make(**options: Any) -> gym.Env[Any, str]:
    return gym.make("visenv/ZoomVQA-v0", **{"preset": "tiny", **options})


def begun(box: tuple[float, float, float, float] | None, **options: Any) -> ZoomVQA:
    """Return an environment after the reset, with a scene of 960 px that is shown at 96 px."""
    image = Image.from_pixels(np.zeros((960, 960, 3), np.uint8))
    truth = QuestionTruth() if box is None else QuestionTruth(target_box=box, detail_box=box)
    env = make(
        data=[Sample("s", "Which?", (image,), ("yes",) * 10, ground_truth=truth)], **options
    ).unwrapped
    assert isinstance(env, ZoomVQA)
    env.reset(seed=0)
    return env


def episodes(policy: Any, seeds: Sequence[int]) -> list[Episode]:
    return Collector(make, policy).episodes([EpisodeSpec(seed) for seed in seeds])


def test_keypoint_is_the_center_plus_offset_and_noise_in_sides_of_the_crop() -> None:
    env = begun((300, 500, 340, 540))  # center (320, 520), shown at (32, 52); the crop has 32 px
    first, second = np.random.default_rng(7).standard_normal(2)
    teacher = LooksBeside(strength=0.5, offset=(1.0, -0.5), noise=0.25)
    (call,) = teacher.turn(env, np.random.default_rng(7)).calls
    # x: 32 + 0.5 * 32 * (1 + 0.25 z); y: 52 + 0.5 * 32 * (-0.5 + 0.25 z); rounded to multiples of 5
    expected = [5 * round((48 + 4 * first) / 5), 5 * round((44 + 4 * second) / 5)]
    assert call.arguments == {"keypoint": expected}


def test_keypoint_stays_in_the_image() -> None:
    env = begun((900, 0, 960, 60))
    (call,) = LooksBeside(offset=(9.0, -9.0)).turn(env, np.random.default_rng(0)).calls
    assert call.arguments == {"keypoint": [95, 0]}


def test_box_is_moved_like_the_keypoint() -> None:
    env = begun((300, 500, 340, 540), tool="json_box")
    (call,) = LooksBeside(offset=(1.0, 0.0), noise=0.0).turn(env, np.random.default_rng(0)).calls
    assert call.arguments == {"bbox": [49, 34, 81, 66]}  # 32 px around (65, 50)


@pytest.mark.parametrize(("offset", "answer"), [((0.0, 0.0), "yes"), ((1.0, 0.0), "unknown")])
def test_teacher_gives_up_unless_the_crop_contains_the_detail(
    offset: tuple[float, float], answer: str
) -> None:
    env = begun((300, 500, 340, 540))
    teacher = LooksBeside(offset=offset, noise=0.0)
    env.step(env.grammar.compose(teacher.turn(env, np.random.default_rng(0))))
    assert teacher.turn(env, np.random.default_rng(0)).answer == answer


def test_teacher_of_a_row_without_boxes_answers() -> None:
    env = begun(None)
    teacher = LooksBeside()
    env.step(env.grammar.compose(teacher.turn(env, np.random.default_rng(0))))
    assert teacher.turn(env, np.random.default_rng(0)).answer == "yes"


def test_flaw_lowers_the_success_and_depends_on_the_seed() -> None:
    played = episodes(TeacherPolicy("looks_beside"), range(60))
    looks = [event for each in played for event in each.events if isinstance(event, ToolCalled)]
    given = [
        event.answer for each in played for event in each.events if isinstance(event, Answered)
    ]
    assert len(looks) == len(given) == 60
    success = sum(each.metrics["accuracy"] for each in played)
    assert 12 <= success <= 33  # 22 expected, three standard deviations are 11
    assert given.count("unknown") == 60 - success
    assert played[:5] == episodes(TeacherPolicy("looks_beside"), range(5))
