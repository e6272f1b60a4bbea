"""Tests ZoomVQA as a whole: prompts, crops, rewards and refused options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

import visenv  # noqa: F401  (registers the ids)
from visenv.envs.zoom_vqa import ZoomVQA
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Image, Sample, StepResult

ZOOM = "<think> closer </think><tool>\nname: zoom\nkeypoint: [{}, {}]\n</tool>"
ANSWER = "<think> clear </think><answer>{}</answer>"


def make(**options: Any) -> gym.Env[Any, str]:
    return gym.make("visenv/ZoomVQA-v0", **{"preset": "tiny", **options})


def scene(width: int, height: int) -> Sample:
    """Return a sample with a gradient, so that the pixels of a crop reveal its position."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width, dtype=np.uint8)
    pixels[..., 1] = np.linspace(0, 255, height, dtype=np.uint8)[:, None]
    return Sample("given", "Which?", (Image.from_pixels(pixels),), ("yes",) * 10)


def test_oracle_earns_the_full_reward() -> None:
    env = make()
    for seed in range(5):
        env.reset(seed=seed)
        base = env.unwrapped
        assert isinstance(base, ZoomVQA)
        env.step(base.grammar.compose(base.oracle_turn()))
        _, reward, terminated, _, info = env.step(base.grammar.compose(base.oracle_turn()))
        assert terminated
        assert reward == pytest.approx(2.1)
        assert info["step"].metrics == {"accuracy": 1.0, "zoomed": 1.0, "hit": 1.0}


def test_tiny_stage_shows_96_pixels_and_crops_from_the_native_scene() -> None:
    env = make()
    observation, _ = env.reset(seed=1)
    assert [image.shape for image in observation["images"]] == [(96, 96, 3)]
    observation, *_ = env.step(ZOOM.format(48, 48))
    assert [image.shape for image in observation["images"]] == [(96, 96, 3)]
    assert "<image_name> tool_result_1 </image_name>" in observation["text"]


def test_train_stage_shrinks_to_1024_and_crops_from_that() -> None:
    env = gym.make("visenv/ZoomVQA-v0", data=[scene(2048, 1024)])
    observation, _ = env.reset(seed=0)
    shown = observation["images"][0]
    assert shown.shape == (512, 1024, 3)
    observation, _, _, _, info = env.step(ZOOM.format(512, 256))
    assert observation["images"][0].shape == (1024, 1024, 3)
    detail = info["step"].events[1].detail
    assert detail["shown_box"] == [312, 56, 712, 456]
    assert detail["box"] == [624, 112, 1424, 912]
    window = PIL.Image.fromarray(shown[56:456, 312:712])
    enlarged = window.resize((1024, 1024), PIL.Image.Resampling.LANCZOS)
    assert (observation["images"][0] == np.asarray(enlarged)).all()


def test_last_turn_is_held_to_the_published_expression() -> None:
    env = make()
    _, info = env.reset(seed=0)
    first: StepResult = info["step"]
    assert first.request is not None
    assert first.request.regex is None
    *_, info = env.step(ZOOM.format(5, 5))
    last = info["step"].request
    assert last.prefill == "<think>"
    assert last.regex == r"([^<]*)</think>([^<]*)<answer>([^<]*)</answer>"
    assert last.stop == ("</tool>", "</answer>")
    assert re.fullmatch(last.regex, " a </think><answer>b</answer>")


def test_first_turn_must_answer_without_tool_calls() -> None:
    _, info = make(tool_calls=0).reset(seed=0)
    assert info["step"].request.regex == r"([^<]*)</think>([^<]*)<answer>([^<]*)</answer>"


def test_full_prompt_names_the_tool_its_keys_and_the_image_size() -> None:
    env = gym.make("visenv/ZoomVQA-v0")
    observation, info = env.reset(seed=0, options={"sample": scene(800, 600)})
    text = observation["text"]
    assert "name: zoom" in text
    assert "keypoint" in text
    assert "once" in text
    assert "(800, 600)" in text
    assert text.count("<image>") == 1
    assert info["step"].request.prefill.startswith("<think>")
    assert [message.role for message in info["step"].messages] == ["system", "user"]


def test_second_call_costs_the_last_turn_and_the_episode_is_truncated() -> None:
    env = make()
    env.reset(seed=0)
    env.step(ZOOM.format(5, 5))
    _, reward, terminated, truncated, info = env.step(ZOOM.format(6, 6))
    assert (terminated, truncated, info["truncated_by"]) == (False, True, "turns")
    assert reward == pytest.approx(1.0)  # format, but no answer; a call alone is not paid


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        ("<think>a</think><tool>\nkeypoint: [1, 2]\n</tool>", "name"),
        ("<think>a</think><tool>\nname: crop\nkeypoint: [1, 2]\n</tool>", "zoom"),
        ("<think>a</think><tool>\nname: zoom\n</tool>", "keypoint"),
        (ZOOM.format(96, 5), "96"),
        (ZOOM.format(-1, 5), "96"),
        (ZOOM.format("1.5", 5), "keypoint"),
        (ZOOM.format("NaN", 5), "keypoint"),
        (ZOOM.format("1e308", 5), "keypoint"),
        (ZOOM.format('"3"', 5), "keypoint"),
        (ZOOM.format("true", 5), "keypoint"),
        (ZOOM.format("1" * 500, 5), "keypoint"),
        ("<think>a</think><tool>\nname: zoom\nkeypoint: [1, 2]\nbox: 3\n</tool>", "box"),
        ("<think>a</think><tool>\nname: zoom\nkeypoint: [1, 2\n</tool>", "keypoint"),
        ("<think>a</think><tool>\nname: zoom\nkeypoint: " + "[" * 3000 + "\n</tool>", "keypoint"),
        ("hello", "<tool>"),
    ],
)
def test_calls_that_fail_get_a_message_and_the_answer_can_still_be_given(
    turn: str, says: str
) -> None:
    env = make()
    env.reset(seed=0)
    observation, _, terminated, truncated, _ = env.step(turn)
    assert not terminated
    assert not truncated
    assert "<result>\nError: " in observation["text"]
    assert says in observation["text"]
    assert len(observation["text"]) < 1500
    _, _, terminated, _, _ = env.step(ANSWER.format("red"))
    assert terminated


def test_random_control_ignores_the_keypoint_and_repeats_by_sample() -> None:
    boxes = []
    for keypoint in ((1, 1), (90, 90)):
        env = make(zoom="random")
        env.reset(seed=3)
        *_, info = env.step(ZOOM.format(*keypoint))
        boxes.append(info["step"].events[1].detail["box"])
    assert boxes[0] == boxes[1]


def test_fields_of_the_scenes_are_an_option() -> None:
    def bluest(**options: Any) -> int:
        """Return the largest difference of blue minus red over the pixels of a scene."""
        observation, _ = make(preset="tiny", **options).reset(seed=0)
        view = observation["images"][0].astype(int)
        return int((view[..., 2] - view[..., 0]).max())

    assert bluest(scenes={"frames": ["blue"]}) > 150  # the frame is (24, 72, 190)
    assert bluest() < 100  # the frame is orange


def test_outcome_rewards_only_the_answer() -> None:
    env = make(reward="outcome")
    env.reset(seed=0)
    env.step("hello")
    base = env.unwrapped
    assert isinstance(base, ZoomVQA)
    _, reward, *_ = env.step(ANSWER.format(base.sample.answers[0]))
    assert reward == 1.0


def test_compat_scores_one_of_ten_answers_as_the_public_code_does() -> None:
    sample = Sample("s", "?", scene(64, 64).images, ("cat",) + ("dog",) * 9)
    scores = {}
    for compat in (None, "r1_vlm"):
        env = make(reward="outcome", compat=compat)
        env.reset(seed=0, options={"sample": sample})
        _, scores[compat], *_ = env.step(ANSWER.format("cat"))
    assert scores[None] == pytest.approx(0.3)  # official: "cat" is in 9 of 10 subsets, each 1/3
    assert scores["r1_vlm"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"preset": "tinny"}, UnknownNameError, "tiny"),
        ({"preset": "train"}, ConfigurationError, "scenes"),
        ({"reward": "papper"}, UnknownNameError, "paper"),
        ({"compat": "r1-vlm"}, UnknownNameError, "r1_vlm"),
        ({"zoom": "randon"}, UnknownNameError, "random"),
        ({"tool_calls": -1}, ConfigurationError, "tool_calls"),
        ({"tool_calls": 1.5}, ConfigurationError, "tool_calls"),
        ({"view_sid": 3}, UnknownNameError, "view_side"),
        ({"render_mode": "humane"}, ConfigurationError, "render_mode"),
        ({"on_abort": "ignore"}, ConfigurationError, "on_abort"),
        ({"scenes": {"frame_s": ["red"]}}, UnknownNameError, "frames"),
        ({"scenes": {"frames": ["rde"]}}, UnknownNameError, "red"),
        ({"scenes": {"frames": 3}}, ConfigurationError, "frames: Input should be a valid tuple"),
        ({"scenes": {"difficulty": "high"}}, ConfigurationError, "difficulty: Input should be"),
        (
            {"scenes": {"grain": 1}, "data": "textvqa:x"},
            ConfigurationError,
            "scenes changes the procedural scenes",
        ),
        ({"data": "textvq:/nowhere"}, UnknownNameError, "textvqa"),
        ({"data": "textvqa:/nowhere"}, DataError, "nowhere"),
    ],
)
def test_options_that_are_invalid_name_the_valid_ones(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make(**options)


def test_sample_without_or_with_a_broken_image_is_a_data_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 not a photograph")
    env = make()
    for images in ((), (Image.from_file(broken),), (Image.from_file(tmp_path / "none.png"),)):
        with pytest.raises(DataError):
            env.reset(seed=0, options={"sample": Sample("s", "?", images, ("a",))})
