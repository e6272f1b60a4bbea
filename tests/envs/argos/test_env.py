"""Tests the Argos environments as a whole: observations, events, rewards and refused options."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401  (registers the ids)
from visenv.envs.argos import ArgosImage, ArgosVideo, MediaTruth
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.grammar.points import Point
from visenv.types import Image, Sample, StepResult, Video
from visenv.verifier import Referred, Selected

IDS = ("ArgosImage", "ArgosVideo")


def make(name: str = "ArgosImage", **options: Any) -> gym.Env[Any, str]:
    return gym.make(f"visenv/{name}-v0", **options)


def played(env: gym.Env[Any, str], seed: int, turn: str | None = None) -> StepResult:
    """Play the oracle's turn, or the given one."""
    env.reset(seed=seed)
    base: Any = env.unwrapped
    *_, info = env.step(base.grammar.compose(base.oracle_turn()) if turn is None else turn)
    result: StepResult = info["step"]
    return result


def colored(width: int, height: int, frames: int = 1) -> tuple[Image, ...]:
    return (Image.from_pixels(np.zeros((height, width, 3), np.uint8)),) * frames


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("preset", ["default", "tiny", "qwen3"])
def test_oracle_earns_the_full_reward(name: str, preset: str) -> None:
    env = make(name, preset=preset)
    for seed in range(8):
        result = played(env, seed)
        assert result.reward == 1.0, result.terms
        assert result.metrics["pointing_accuracy"] == 1.0
        assert result.metrics["label_recall"] == 1.0
        assert result.metrics.get("temporal_iou", 1.0) == 1.0


@pytest.mark.parametrize(
    ("reward", "expected"),
    [("argos", 2 / 3), ("no_reasoning", 0.5), ("no_grounding", 1.0), ("outcome", 1.0)],
)
def test_rewards_leave_out_terms(reward: str, expected: float) -> None:
    env = make(reward=reward, kinds=["color"])
    env.reset(seed=3)
    base: Any = env.unwrapped
    shape, answer = base.truth.targets[0], base.sample.answers[0]
    turn = f"<think>The {shape} is {answer}.</think><answer>{answer}</answer>"
    assert played(env, 3, turn).reward == pytest.approx(expected)


def test_points_are_logged_in_native_pixels_and_the_choice_with_them() -> None:
    sample = Sample("s", "Where?", colored(400, 200), ("left",), ground_truth=MediaTruth())
    env = make(data=[sample], view_side=100)
    turn = '<think><point x="50" y="10" alt="a">a</point></think><answer>left</answer>'
    result = played(env, 0, turn)
    (referred,) = (event for event in result.events if isinstance(event, Referred))
    (selected,) = (event for event in result.events if isinstance(event, Selected))
    assert referred.points == (Point(200, 40, "a"),)
    assert referred.shown_size == (100, 50)
    assert selected == Selected(0, ("exact", "spatial", "reasoning"), "rules")


def test_oracle_points_in_the_roundest_numbers_that_hit() -> None:
    env = make(preset="tiny")
    for seed in range(20):
        step = played(env, seed)
        (referred,) = [event for event in step.events if isinstance(event, Referred)]
        assert step.terms["spatial"] == 1
        assert all(point.x % 5 == point.y % 5 == 0 for point in referred.points)


def test_relative_coordinates_go_to_1000() -> None:
    sample = Sample("s", "Where?", colored(400, 200), ("left",), ground_truth=MediaTruth())
    env = make(data=[sample], preset="qwen3")
    turn = '<think><point x="500" y="500" alt="a">a</point></think><answer>left</answer>'
    result = played(env, 0, turn)
    (referred,) = (event for event in result.events if isinstance(event, Referred))
    assert referred.points == (Point(200, 100, "a"),)


def test_video_is_one_part_and_its_frames_are_announced() -> None:
    _, info = make("ArgosVideo").reset(seed=0)
    (message,) = info["step"].messages
    video = next(part for part in message.parts if isinstance(part, Video))
    assert len(message.parts) == 3
    assert message.parts[0].startswith("[F1 @ t=0.00s] [F2 @ t=0.25s] ")
    assert message.parts[0].count("[F") == len(video.frames) == len(video.times)


def test_reasoning_about_images_has_no_anchors_and_videos_no_spatial_term() -> None:
    assert played(make(), 1).terms["temporal"] is None
    assert played(make("ArgosVideo"), 1).terms["spatial"] is None


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("turn", ["", "<think>4", "<think><answer>4</answer></think>", "4" * 10**6])
def test_malformed_turn_gets_nothing(name: str, turn: str) -> None:
    result = played(make(name), 0, turn)
    assert (result.reward, result.terminated) == (0.0, True)
    assert [type(event).__name__ for event in result.events] == ["TurnTaken", "Malformed"]


@pytest.mark.parametrize("frames", [0, 33, 3])
def test_video_that_cannot_be_shown_is_refused(frames: int) -> None:
    truth = MediaTruth(times=tuple(float(time) for time in range(4)))
    env = make("ArgosVideo", data=[Sample("s", "?", colored(8, 8, frames), ("a",), "", truth)])
    with pytest.raises(DataError, match="1 to 32 frames"):
        env.reset(seed=0)


def test_row_without_image_is_played_without_grounding() -> None:
    env = make(
        data=[Sample("s", "2 + 2?", (), ("4",), ground_truth=MediaTruth())], reward="outcome"
    )
    result = played(env, 0, '<think><point x="1" y="1">a</point></think><answer>4</answer>')
    assert result.reward == 1.0
    assert next(e for e in result.events if isinstance(e, Selected)).functions == (
        "exact",
        "reasoning",
    )


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"preset": "huge"}, UnknownNameError, "preset"),
        ({"reward": "argo"}, UnknownNameError, "argos"),
        ({"noise": 2.0}, ConfigurationError, "noise"),
        ({"empty": "one"}, UnknownNameError, "skip"),
        ({"categories": 4}, ConfigurationError, "categories"),
        ({"kinds": ["colour"]}, UnknownNameError, "color"),
        ({"split": "val"}, UnknownNameError, "ood"),
        ({"teachers": {"detector": "rules:json:loads"}}, ConfigurationError, "segmenter"),
        ({"teachers": {"detective": "rules:json:loads"}}, UnknownNameError, "detector"),
        ({"teachers": "model"}, ConfigurationError, "oracle"),
        ({"threshold": 0.0}, ConfigurationError, "threshold"),
        ({"weights": {"accuracy": 0.0}}, ConfigurationError, "accuracy"),
        ({"view": 3}, UnknownNameError, "view_side"),
    ],
)
def test_options_that_are_invalid_are_named(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make(**options)


@pytest.mark.parametrize("name", IDS)
def test_fields_of_a_preset_can_be_changed(name: str) -> None:
    env = make(name, world="tiny", split="train", prompt="brief", view_side=24)
    observation, _ = env.reset(seed=0)
    assert {image.shape for image in observation["images"]} == {(24, 24, 3)}
    assert "<think>" not in observation["text"]


@pytest.mark.slow
def test_noise_turns_verdicts_around_at_its_rate() -> None:
    env = make(noise=0.3, kinds=["color"])
    terms = [played(env, seed).terms for seed in range(150)]
    for name in ("spatial", "reasoning"):
        wrong = sum((term[name] or 0) < 0.5 for term in terms) / len(terms)
        assert wrong == pytest.approx(0.3, abs=0.12)  # three standard deviations
    assert [played(env, seed).terms for seed in range(9)] == terms[:9]


def test_classes_are_those_of_the_ids() -> None:
    assert isinstance(make().unwrapped, ArgosImage)
    assert isinstance(make("ArgosVideo").unwrapped, ArgosVideo)
