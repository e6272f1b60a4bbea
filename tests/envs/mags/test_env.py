from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.environments import few
from visenv.background import run_here
from visenv.envs.mags.env import TextIgnored
from visenv.envs.mags.prompts import NO_ZOOM
from visenv.envs.mags.tools import ALL_REJECTED
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.policies.scripted import ScriptedPolicy
from visenv.rollout.episode import EpisodeSpec, play
from visenv.testing.record import played
from visenv.types import Image, Malformed, Sample, StepResult, ToolCalled
from visenv.viewer.episode import marks

OPTIONS = {"magnifier": "lanczos"}


def made(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("visenv/MagsZoom-v0", **{**OPTIONS, **options})


def stepped(env: gym.Env[Any, Any], text: str) -> StepResult:
    result = env.step(text)[4]["step"]
    assert isinstance(result, StepResult)
    return result


def plain(result: StepResult) -> str:
    return "".join(message.plain() for message in result.messages)


def picture(width: int, height: int) -> Sample:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Sample("p", "What is it?", (Image.from_pixels(pixels),), ("cat",), "attribute")


@pytest.mark.slow
@pytest.mark.parametrize("preset", few(["stage2", "stage1"], 1))
def test_oracle_reaches_4_2(preset: str) -> None:
    env = made(preset=preset)
    for seed in range(12):
        episode = played(env, "oracle", seed)
        assert episode.reward == pytest.approx(4.2)
        assert episode.metrics["accuracy"] == episode.metrics["inclusion"] == 1
        assert len(episode.turns) == 2
        assert len(episode.turns[1].messages[0].images) == episode.metrics["valid_boxes"]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["tiny-stage1", "tiny", "tiny-degraded"])
def test_brief_oracle_looks_at_all_that_decides(preset: str) -> None:
    env = made(preset=preset)
    for seed in range(12):
        episode = played(env, "oracle", seed)
        assert episode.metrics["coverage"] == episode.metrics["accuracy"] == 1
        assert episode.metrics["thought_words"] == 5


def test_thought_words_are_counted_without_the_boxes() -> None:
    thought = "<think>a cat, a cat <zoom>[[0, 0, 20, 20]]</zoom> or two</think>"
    for first, words in ((thought, 6), ("<think>", 0), ("", 0)):
        env = made()
        env.reset(seed=0)
        env.step(first)
        metrics = env.step("<rethink>b</rethink><answer>4</answer>")[4]["step"].metrics
        assert metrics["thought_words"] == words


@pytest.mark.parametrize(
    "first",
    [
        "",
        "<think>",
        "<think>nothing to see</think>",
        "<think>a<zoom>[[1, 2, 3]]</zoom></think>",
        "<rethink>early</rethink><answer>4</answer>",
        "<think><zoom>[[0, 0, 20, 20]]</zoom><zoom>[[0, 0, 20, 20]]</zoom></think>",
        "<think>a<zoom>[[0, 0, 20, 20]]</zoom></think>",
    ],
)
def test_episodes_have_two_turns(first: str) -> None:
    env = made()
    _, info = env.reset(seed=0)
    assert info["step"].request.stop == ("</think>",)
    result = stepped(env, first)
    assert result.messages
    assert result.request is not None
    assert result.request.stop == ("</answer>",)
    last = stepped(env, "<rethink>so</rethink><answer>4</answer>")
    assert last.terminated


def test_round_2_without_an_answer_is_truncated() -> None:
    env = made()
    env.reset(seed=0)
    stepped(env, "<think>a<zoom>[[0, 0, 20, 20]]</zoom></think>")
    assert stepped(env, "<think>again<zoom>[[0, 0, 20, 20]]</zoom></think>").truncated_by == "turns"


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ("<think>easy</think><answer>4</answer>", "Round 1 takes no answer"),
        ("<think>a <answer>4</answer> <zoom>[[0, 0, 20, 20]]</zoom></think>", "not inside it"),
    ],
)
def test_answer_in_round_1_is_malformed(turn: str, message: str) -> None:
    env = made()
    env.reset(seed=0)
    result = stepped(env, turn)
    assert [event for event in result.events if isinstance(event, Malformed)]
    assert message in plain(result)
    assert not result.messages[0].images, "no crop is shown"


def test_text_after_the_thought_is_logged() -> None:
    env = made()
    env.reset(seed=0)
    result = stepped(env, "<think>a<zoom>[[0, 0, 20, 20]]</zoom></think> and more")
    assert TextIgnored(0, "and more") in result.events


def test_text_before_the_thought_is_logged() -> None:
    env = made()
    env.reset(seed=0)
    result = stepped(env, "First: <think>a<zoom>[[0, 0, 20, 20]]</zoom></think>")
    assert TextIgnored(0, "First:") in result.events


def test_environment_reports_a_missing_zoom() -> None:
    for preset in ("stage1", "tiny"):
        env = made(preset=preset)
        env.reset(seed=0)
        assert NO_ZOOM in plain(stepped(env, "<think>clear</think>"))


def test_crops_come_in_order_with_a_line_about_each_rejected_box() -> None:
    env = made(data=[picture(400, 200)])
    env.reset(seed=0)
    boxes = "[[0, 0, 40, 20], [0, 0, 400, 200], [100, 50, 150, 60], [0, 0, 40, 20]]"
    result = stepped(env, f"<think>a<zoom>{boxes}</zoom></think>")
    (message,) = result.messages
    assert [image.size for image in message.images] == [(160, 80), (200, 40)]
    said = message.plain()
    assert (
        "Box 2, [0, 0, 400, 200], was rejected: it must cover less than 40% of the image." in said
    )
    assert "Box 4, [0, 0, 40, 20], was rejected: it repeats an earlier box." in said
    assert said.index("crop_1") < said.index("crop_2") < said.index("Box 2")
    (call,) = [event for event in result.events if isinstance(event, ToolCalled)]
    assert call.ok
    assert (call.detail["written"], call.detail["valid"], call.detail["duplicates"]) == (4, 2, 1)
    assert [each["box"] for each in call.detail["boxes"]] == [
        [0, 0, 40, 20], None, [100, 50, 150, 60], None,
    ]  # fmt: skip


def test_duplicates_are_valid_as_printed() -> None:
    env = made(data=[picture(400, 200)], compat="paper")
    env.reset(seed=0)
    result = stepped(env, "<think>a<zoom>[[0, 0, 40, 20], [0, 0, 40, 20]]</zoom></think>")
    assert len(result.messages[0].images) == 2


@pytest.mark.parametrize(("most", "valid"), [(None, 4), (0.5, 1)])
def test_boxes_shifted_by_a_pixel_count_unless_the_overlap_is_lower(
    most: float | None, valid: int
) -> None:
    """Check the known loophole of docs/mags.md: IoU 0.82 of neighbors, 0.67 and 0.54 of others."""
    env = made(data=[picture(400, 200)], most_overlap=most)
    env.reset(seed=0)
    boxes = [[10 + shift, 10, 20 + shift, 20] for shift in range(4)]
    result = stepped(env, f"<think>a<zoom>{boxes}</zoom></think>")
    (call,) = [event for event in result.events if isinstance(event, ToolCalled)]
    assert (call.detail["valid"], call.detail["duplicates"]) == (valid, 4 - valid)


def test_boxes_that_are_all_rejected_fail() -> None:
    env = made(data=[picture(400, 200)])
    env.reset(seed=0)
    result = stepped(env, '<think>a<zoom>[["x", 0, 1, 2], [NaN, 0, 1, 2]]</zoom></think>')
    assert ALL_REJECTED in plain(result)
    assert plain(result).count("four finite numbers") == 2
    assert not result.messages[0].images


def test_ten_thousand_boxes_are_counted_and_16_examined() -> None:
    env = made(data=[picture(400, 200)])
    env.reset(seed=0)
    boxes = [
        [place % 300, place % 90, place % 300 + 30, place % 90 + 20] for place in range(10_000)
    ]
    result = stepped(env, f"<think>a<zoom>{boxes}</zoom></think>")
    (call,) = [event for event in result.events if isinstance(event, ToolCalled)]
    assert call.detail["written"] == 10_000
    assert len(call.detail["boxes"]) == 16
    assert "Only the first 16 of your 10000 boxes were examined." in plain(result)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (7, 7), (3000, 30), (30, 3000), (7680, 4320)])
def test_odd_images_are_played(size: tuple[int, int]) -> None:
    env = made(data=[picture(*size)])
    view = env.reset(seed=0)[0]["images"][0]
    width, height = view.shape[1], view.shape[0]
    boxes = [[0, 0, min(width, 60), min(height, 30)], [0, 0, width * 0.6, height * 0.6]]
    result = stepped(env, f"<think>a<zoom>{boxes}</zoom></think>")
    for image in result.messages[0].images:
        assert image.size[0] * image.size[1] <= 1024 * 1024
    assert stepped(env, "<answer>cat</answer>").metrics["accuracy"] == 1


def test_crops_are_cut_from_the_native_image() -> None:
    sample = picture(400, 200)
    env = made(data=[sample], magnifier="none", view_side=100)
    env.reset(seed=0)
    result = stepped(env, "<think>a<zoom>[[10, 5, 30, 20]]</zoom></think>")
    (crop,) = result.messages[0].images
    assert np.array_equal(crop.pixels, sample.images[0].pixels[20:80, 40:120])


def test_random_boxes_keep_the_size_and_no_crops_shows_none() -> None:
    sample = picture(400, 200)
    turn = "<think>a<zoom>[[10, 5, 50, 40]]</zoom></think>"
    seen = []
    for control in ({"boxes": "random"}, {"crops": "hidden"}, {}):
        env = made(data=[sample], magnifier="none", **control)
        env.reset(seed=0)
        seen.append(stepped(env, turn).messages[0].images)
    (shifted,), hidden, (true,) = seen
    assert shifted.size == true.size
    assert shifted != true
    assert not hidden


def test_hidden_crops_count_as_zoomed() -> None:
    env = made(data=[picture(400, 200)], magnifier="none", crops="hidden")
    env.reset(seed=0)
    stepped(env, "<think>a<zoom>[[10, 5, 50, 40]]</zoom></think>")
    assert stepped(env, "<answer>cat</answer>").metrics["zoomed"] == 1


def test_hasty_demonstration_answers_in_round_2() -> None:
    from visenv.rollout.advice import Advisor
    from visenv.types import DemonstrationRequest

    env = made(preset="tiny-stage1")
    env.reset(seed=0)
    advisor = Advisor(DemonstrationRequest(expert_rate=0.0), env, 0)
    texts = []
    for _ in range(2):
        text = advisor.advise()
        assert isinstance(text, str)
        texts.append(text)
        env.step(text)
    assert "<zoom>" not in texts[0]
    assert texts[1].endswith("<answer>unknown</answer>")


def test_finite_number_of_samples_repeats() -> None:
    env = made(preset="tiny-stage1", samples=2)
    seen = set()
    for seed in range(12):
        env.reset(seed=seed)
        base: Any = env.unwrapped
        seen.add(base.sample.id)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"preset": "stage3"}, "Did you mean"),
        ({"reward": "stage3"}, "Did you mean"),
        ({"magnifier": "lanczo"}, "Did you mean 'lanczos'"),
        pytest.param(
            {"magnifier": "smfanet:/no/such/file"},
            "no file",
            marks=pytest.mark.component("torch"),
        ),
        ({"compat": "papr"}, "Did you mean 'paper'"),
        ({"boxes": "any"}, "boxes"),
        ({"crops": "any"}, "crops"),
        ({"judge": "any"}, "judge must be"),
        ({"samples": -1}, "samples"),
        ({"data": [], "samples": 3}, "are options of procedural data"),
        ({"crop_pixel": 3}, "Did you mean 'crop_pixels'"),
        ({"scenes": "none"}, "difficulty"),
        ({"kinds": "counting"}, r"kinds must be a list such as \['counting'\]"),
        ({"most_overlap": 0}, "most_overlap"),
        ({"most_overlap": 1.1}, "most_overlap"),
        ({"most_overlap": float("nan")}, "most_overlap"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises((UnknownNameError, ConfigurationError), match=part):
        made(**options)


def test_environment_copies_while_it_runs() -> None:
    env = made(preset="tiny-stage1")
    env.reset(seed=0)
    copied = copy.deepcopy(env)
    turn = "<think>a<zoom>[[0, 0, 20, 20]]</zoom></think>"
    assert stepped(copied, turn).messages == stepped(env, turn).messages


@pytest.mark.parametrize(
    ("boxes", "drawn"),
    [
        ("[[10, 5, 50, 40], [0, 0, 200, 100], [1, 2]]", ["zoom 1", "zoom 2, rejected"]),
        ("[[10, 5, 50, 40], [1, 2], [0, 0, 200, 100]]", ["zoom 1", "zoom 3, rejected"]),
        ("[[0, 0, 200, 100]]", ["zoom, rejected"]),
    ],
)
def test_report_draws_all_boxes_of_a_call(boxes: str, drawn: list[str]) -> None:
    turns = [f"<think>a<zoom>{boxes}</zoom></think>", "<answer>cat</answer>"]
    env = made(data=[picture(200, 100)])
    found = marks(run_here(play(env, ScriptedPolicy(turns), EpisodeSpec(0))))
    assert [mark.label.partition(":")[0] for mark in found] == drawn
    assert [mark.what for mark in found] == ["zoom", "rejected"][-len(drawn) :]
    assert {mark.image for mark in found} == {"image"}
    assert "less than 40%" in found[-1].label


def test_report_draws_a_box_with_swapped_corners() -> None:
    turns = ["<think>a<zoom>[[50, 40, 10, 5]]</zoom></think>", "<answer>cat</answer>"]
    [mark] = marks(
        run_here(play(made(data=[picture(200, 100)]), ScriptedPolicy(turns), EpisodeSpec(0)))
    )
    assert (mark.what, mark.box) == ("rejected", [10, 5, 50, 40])
    assert "x1 < x2" in mark.label
