"""Tests the teacher of ArftCoding: programs that do not make the image readable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import few
from visenv.envs.arft.coding.env import ArftCoding, WrongRepair, mistaken
from visenv.envs.arft.coding.ground_truth import CodingTruth, Distortion
from visenv.envs.arft.coding.repairs import repair, repaired
from visenv.envs.arft.coding.world import is_readable
from visenv.envs.arft.coding.world.kinds import KINDS
from visenv.envs.arft.coding.world.plans import COMPOSITIONS, read_problems
from visenv.envs.arft.coding.world.questions import procedural
from visenv.images import QWEN_PIXELS
from visenv.types import Image, Sample

PROBLEMS = [*KINDS, *map("+".join, COMPOSITIONS)]


def truth_of(*distortions: Distortion, box: Any = None) -> CodingTruth:
    return CodingTruth(
        problems=("dark",), distortions=distortions, split="simple", steps=("code",), box=box
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"name": "rotation180"}, {"name": "rotation90", "clockwise": True}),
        ({"name": "rotation90", "clockwise": True}, {"name": "rotation180"}),
        ({"name": "dark", "gain": 0.01}, {"name": "dark", "gain": 0.1}),
        ({"name": "overexposure", "veil": 81.0}, {"name": "overexposure", "veil": 9.0}),
        (
            {"name": "blur", "kernel": 77, "sigma": 12.0},
            {"name": "blur", "kernel": 39, "sigma": 6.0},
        ),
        ({"name": "noise", "density": 0.8, "seed": 1}, {"name": "noise", "seed": 1}),
    ],
)
def test_repair_is_for_another_problem(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    made = mistaken(truth_of(Distortion(**right)))
    assert made.distortions == (Distortion(**wrong),)


def test_crop_of_the_teacher_is_opposite_the_region() -> None:
    assert mistaken(truth_of(box=(100, 200, 300, 250))).box == (700, 750, 900, 800)


@pytest.mark.slow
@pytest.mark.parametrize("named", few(PROBLEMS, 4))
def test_repair_of_the_teacher_leaves_the_image_unreadable(named: str) -> None:
    problems = read_problems(named)
    sample = procedural("default").made(problems, np.random.default_rng(0))[1]
    truth = sample.truth_as(CodingTruth)
    pixels = sample.images[0].pixels

    def readable(distortions: Any) -> bool | None:
        written = Image.from_pixels(repaired(pixels, distortions))
        return is_readable(sample, written, QWEN_PIXELS)

    assert readable(truth.distortions)
    assert not readable(mistaken(truth).distortions)


def begun(problem: str) -> ArftCoding:
    env = gym.make("visenv/ArftCoding-v0", preset="tiny", problems=[problem]).unwrapped
    assert isinstance(env, ArftCoding)
    env.reset(seed=0)
    return env


def test_teacher_names_the_problem_and_gives_up_after_the_wrong_repair() -> None:
    env, teacher = begun("dark"), WrongRepair(rate=1.0)
    rng = np.random.default_rng
    assert teacher.turn(env, rng(0)) == env.oracle_turn()
    env.step(env.grammar.compose(env.oracle_turn()))
    (call,) = teacher.turn(env, rng(0)).calls
    wrong: Sample = replace(env.sample, ground_truth=mistaken(env.truth))
    assert call.arguments["code"] == repair(wrong, brief=True) != repair(env.sample, brief=True)
    env.step(env.grammar.compose(teacher.turn(env, rng(0))))
    assert env.log.tool_calls[-1].detail["readable"] is False
    assert teacher.turn(env, rng(0)).answer == "unknown"


def test_image_without_a_problem_is_read() -> None:
    env, teacher = begun("none"), WrongRepair(rate=1.0)
    env.step(env.grammar.compose(env.oracle_turn()))
    assert teacher.turn(env, np.random.default_rng(0)) == env.oracle_turn()
    assert env.oracle_turn().answer == env.sample.answers[0]
