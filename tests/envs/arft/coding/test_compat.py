"""Tests ArftCoding with `compat="arft"`: the rebuilt prompt, the crops, and the reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.envs.arft import make_coding
from visenv.types import Sample, StepResult

Env = gym.Env[Any, str]
Broken = Callable[..., Sample]

PROBLEM = "<think>look</think><problem>{{'{}'}}</problem>"
ROTATE = (
    "<think>turn</think><code>```python\nimage = cv2.imread('path_to_input_image.jpg')\n"
    "cv2.imwrite('path_to_output_image.jpg', cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE))\n"
    "```</code>"
)
CUT = ROTATE.replace("cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE)", "image[0:5, 0:5]")
FAIL = "<think>turn</think><code>```python\n1 / 0\n```</code>"
ANSWER = "<think>so</think><answer>yes</answer>"


def begin(sample: Sample, **options: Any) -> tuple[Env, StepResult]:
    env = make_coding(data=[sample], compat="arft", **options)
    _, info = env.reset(seed=0)
    return env, info["step"]


def test_turns_begin_with_one_prompt_that_holds_all_so_far(broken: Broken) -> None:
    env, record = begin(broken("rotation90"))
    assert record.request is not None
    assert record.request.context == "replace"
    for turn in (PROBLEM.format("rotation90"), ROTATE):
        observation, *_, info = env.step(turn)
        record = info["step"]
        assert record.request is not None
        assert record.request.context == "replace"
        (message,) = record.messages
        assert message.role == "user"
        assert len(message.images) == 1
    text = observation["text"]
    assert "<query> Is it so? </query>" in text
    assert text.index(">look<") < text.index("<tips>") < text.index(">turn<")
    assert observation["images"][0].shape == (80, 120, 3), "turned twice"


def test_error_is_not_shown_and_the_image_is_unchanged(broken: Broken) -> None:
    env, record = begin(broken("dark"))
    before = record.messages[0].images[0]
    observation, *_ = env.step(FAIL)
    assert "ZeroDivisionError" not in observation["text"]
    assert "1 / 0" in observation["text"]
    assert (observation["images"][0] == before.pixels).all()


def test_turn_that_does_nothing_is_not_repeated_to_the_policy(broken: Broken) -> None:
    env, record = begin(broken("dark"))
    first = record.messages[0].plain()
    observation, *_ = env.step("I do not know what to do.")
    assert observation["text"] == first


def test_harness_crops_once_a_crop_was_named(broken: Broken) -> None:
    sample = broken("crop", width=400, height=200)
    left, top, right, bottom = sample.ground_truth.box
    wide, high = (right - left) * 400 // 1000, (bottom - top) * 200 // 1000
    env, record = begin(sample)
    assert f"within [{left}, {top}, {right}, {bottom}]" in record.messages[0].plain()
    env.step(PROBLEM.format("crop"))
    observation, *_ = env.step(CUT)
    assert observation["images"][0].shape == (high, wide, 3)
    env.reset(seed=0)
    env.step(PROBLEM.format("blur"))
    observation, *_ = env.step(CUT)
    assert observation["images"][0].shape == (5, 5, 3), "the policy's own numbers"


def test_box_in_the_question_is_not_named_twice(broken: Broken) -> None:
    sample = broken("crop")
    asked = "Read the text within the [366, 723, 506, 851]."
    named = Sample(
        sample.id, asked, sample.images, sample.answers, sample.kind, sample.ground_truth
    )
    _, record = begin(named)
    assert "in thousandths" not in record.messages[0].plain()


def test_steps_are_rewarded_as_in_the_public_code(broken: Broken) -> None:
    env, _ = begin(broken("rotation90", "dark"))
    rewards = [float(env.step(turn)[1]) for turn in (PROBLEM.format("rotation90"), ROTATE, ANSWER)]
    # half of the labels and the form; 0.9 and the form; 1 and the form
    assert rewards == pytest.approx([1.5, 1.9, 2.0])


def test_last_turn_may_use_a_tool(broken: Broken) -> None:
    env, _ = begin(broken("rotation90"), turns=2)
    env.step(PROBLEM.format("rotation90"))
    _, reward, _, truncated, info = env.step(ROTATE)
    assert truncated
    assert info["step"].events[1].ok
    assert float(reward) == pytest.approx(1.9)


def test_words_are_counted_as_the_public_code_does(broken: Broken) -> None:
    sample = broken("none")
    new_york = Sample(
        "s", "Where?", sample.images, ("new york new york",), "none", sample.ground_truth
    )
    env, _ = begin(new_york)
    env.step(PROBLEM.format("none"))
    _, reward, *_, info = env.step(ANSWER.replace("yes", "new york new york"))
    assert float(reward) == pytest.approx(0.5 + 1)  # 2 of 4 words and 2 of 4, and the form
    # the evaluation of the public code counts an exact match as 1
    assert info["step"].metrics["f1"] == 1.0


def test_images_of_an_earlier_episode_are_never_shown(broken: Broken) -> None:
    env, _ = begin(broken("rotation90"))
    env.step(ROTATE)
    env.reset(seed=0)
    observation, *_ = env.step(ROTATE.replace("cv2.imwrite", "print"))
    fresh = broken("rotation90").images[0].pixels
    assert np.array_equal(observation["images"][0], fresh)
