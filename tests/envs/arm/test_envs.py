"""Tests the four ARM environments: images and their names, ends of episodes, and tools."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.env.base import JudgingEnv
from visenv.envs.arm.ground_truth import JudgingTruth, judging_sample
from visenv.envs.arm.presets import PRESETS
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Image, Malformed, Sample, ToolCalled

ENVS = ["ArmZoom", "ArmDoc", "ArmIF", "ArmPreference"]
ANSWER = "<think>so</think><answer>Overall Judgment: Answer 1 is better</answer>"


class Given:
    """Provides one sample."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def sample(self, rng: np.random.Generator) -> Sample:
        return self._sample


def made(name: str, **options: Any) -> tuple[Any, JudgingEnv]:
    env = gym.make(f"visenv/{name}-v0", **options)
    judge = env.unwrapped
    assert isinstance(judge, JudgingEnv)
    return env, judge


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<think>look</think><tool_call>{body}</tool_call>"


def picture(value: int, side: int = 64) -> Image:
    return Image.from_pixels(np.full((side, side, 3), value, np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVS)
def test_oracle_sees_and_is_right(name: str) -> None:
    env, judge = made(name)
    for seed in range(5):
        env.reset(seed=seed)
        terminated = truncated = False
        reward = 0.0
        while not (terminated or truncated):
            turn = judge.grammar.compose(judge.oracle_turn())
            _, reward, terminated, truncated, info = env.step(turn)
        assert terminated
        assert reward == pytest.approx(env.get_wrapper_attr("top"))
        assert info["step"].metrics["accuracy"] == 1.0


@pytest.mark.parametrize("name", ENVS)
def test_episode_without_tools_is_one_turn(name: str) -> None:
    env, judge = made(name, mode="no_tool")
    env.reset(seed=0)
    assert judge.tools == {}
    tool = {"ArmDoc": "doc_page_retrieval_by_index"}.get(name, "image_zoom_in_tool")
    *_, truncated, info = env.step(call(tool))
    assert truncated
    assert info["truncated_by"] == "turns"


def test_last_turn_is_announced_and_has_no_tools() -> None:
    env, judge = made("ArmDoc", turns=2)
    _, info = env.reset(seed=0)
    page = call("doc_page_retrieval_by_index", filename=judge.document(), image_idx=1)
    observation, *_ = env.step(page)
    assert "no tool calls left" in observation["text"]
    _, reward, terminated, truncated, info = env.step(page)
    (called,) = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert not called.ok
    assert "No tool call is left" in called.reason
    assert (terminated, truncated, info["truncated_by"]) == (False, True, "turns")
    assert reward == 0.0


def test_responses_and_images_have_the_names_that_are_announced() -> None:
    sample = judging_sample(
        id="1",
        instruction="Which?",
        truth=JudgingTruth(candidates=("first", "second")),
        verdict=1,
        images=[picture(1), picture(2), picture(3)],
    )
    env, judge = made("ArmZoom", data=Given(sample))
    observation, _ = env.reset(seed=0)
    assert judge.store.texts == {"resp_1": "first", "resp_2": "second"}
    names = ["original_image", "original_image_1", "original_image_2"]
    assert list(judge.store.images) == names
    assert all(f"{name}:\n<image>" in observation["text"] for name in names)

    observation, *_ = env.step(
        call("image_zoom_in_tool", image="original_image_2", bbox_2d=[0, 0, 500, 500])
    )
    assert "observation_1:\n<image>" in observation["text"]
    assert list(judge.store.images) == [*names, "observation_1"]
    assert (observation["images"][0] == 3).all()
    # A later call can zoom into an observation by its announced name.
    observation, *_ = env.step(
        call("image_zoom_in_tool", image="observation_1", bbox_2d=[0, 0, 1000, 1000])
    )
    assert "observation_2:\n<image>" in observation["text"]


@pytest.mark.parametrize(
    ("candidates", "constraint", "names"),
    [
        (1, "", ["resp_0"]),
        (1, "short", ["text_0"]),
        (4, "", ["resp_1", "resp_2", "resp_3", "resp_4"]),
    ],
)
def test_names_of_responses(candidates: int, constraint: str, names: list[str]) -> None:
    sample = judging_sample(
        id="1",
        instruction="?",
        truth=JudgingTruth(
            candidates=tuple(f"r{n}" for n in range(candidates)), constraint=constraint
        ),
        verdict=True if candidates == 1 else candidates,
    )
    env, judge = made("ArmIF", data=Given(sample))
    observation, _ = env.reset(seed=0)
    assert list(judge.store.texts) == names
    assert all(f"<start_of_{name}>" in observation["text"] for name in names)
    assert ("<start_of_constraint>" in observation["text"]) == bool(constraint)


@pytest.mark.parametrize(
    "broken", ["<think>x</think><tool_call>{not json</tool_call>", call("no_such_tool", x=1)]
)
def test_malformed_call_is_answered_and_costs_its_share_of_the_format(broken: str) -> None:
    env, judge = made("ArmDoc")
    env.reset(seed=0)
    observation, *_, info = env.step(broken)
    assert "Error:" in observation["text"]
    events = info["step"].events
    assert [type(event) for event in events[1:]] == [Malformed, ToolCalled]
    assert events[2].tool == ""
    (right,) = judge.sample.answers
    _, reward, terminated, *_ = env.step(ANSWER.replace("1", right))
    assert terminated
    assert reward == pytest.approx(0.15 + 0.7)  # half of R_f, and R_a


def test_public_loop_drops_a_malformed_call_and_ends() -> None:
    env, _ = made("ArmDoc", compat="arm")
    env.reset(seed=0)
    *_, terminated, truncated, _ = env.step("<think>x</think><tool_call>{not json</tool_call>")
    assert terminated
    assert not truncated


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "\0", "x" * 10_000, ""])
def test_document_name_leads_nowhere(name: str) -> None:
    env, _ = made("ArmDoc")
    env.reset(seed=0)
    observation, *_ = env.step(call("doc_page_retrieval_by_index", filename=name, image_idx=1))
    assert "There is no document" in observation["text"]
    assert len(observation["text"]) < 1000


def test_metric_found_is_whether_all_evidence_was_shown() -> None:
    env, judge = made("ArmDoc")
    env.reset(seed=0)
    evidence = judge.sample.ground_truth.evidence_pages[0]
    other = 1 if evidence != 1 else 2
    for page, found in ((other, 0.0), (evidence, 1.0)):
        env.reset(seed=0)
        env.step(call("doc_page_retrieval_by_index", filename=judge.document(), image_idx=page))
        *_, info = env.step(ANSWER)
        single = len(judge.sample.ground_truth.evidence_pages) == 1
        assert info["step"].metrics["found"] == (found if single else 0.0)


@pytest.mark.slow
def test_held_out_documents_are_others() -> None:
    names = []
    for documents in ((0, 5), (5, 10)):
        env, judge = made("ArmDoc", documents=documents)
        seen = set()
        for seed in range(20):
            env.reset(seed=seed)
            seen.add(judge.document())
        names.append(seen)
    assert not names[0] & names[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ArmZoom", "ArmDoc", "ArmPreference"])
@pytest.mark.parametrize("candidates", [1, 2, 4])
def test_responses_of_any_number(name: str, candidates: int) -> None:
    env, judge = made(name, candidates=candidates)
    env.reset(seed=3)
    assert len(judge.sample.ground_truth.candidates) == candidates


def test_opening_fits_the_budgets_of_its_stage() -> None:
    for name, preset in PRESETS.items():
        env, _ = made("ArmDoc", preset=name)
        observation, _ = env.reset(seed=1)
        (overview,) = observation["images"]
        assert overview.shape[0] * overview.shape[1] <= preset.overview_pixels


@pytest.mark.parametrize("preset", PRESETS)
def test_constraint_is_shown(preset: str) -> None:
    env, judge = made("ArmIF", preset=preset)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        assert judge.sample.ground_truth.constraint in observation["text"]


def test_constraints_are_those_asked_for() -> None:
    name = "check_whether_has_no_arabic_number_in_response"
    env, judge = made("ArmIF", checks=[name])
    for seed in range(5):
        env.reset(seed=seed)
        assert judge.sample.kind == name
    with pytest.raises(UnknownNameError, match="no text check"):
        made("ArmIF", checks=["check_rhymes"])
    with pytest.raises(ConfigurationError, match="checks selects procedural samples"):
        made("ArmIF", checks=[name], data=Given(judge.sample))


def test_small_model_names_the_text_that_it_judges() -> None:
    env, judge = made("ArmIF", preset="tiny")
    env.reset(seed=0)
    env.step(judge.grammar.compose(judge.oracle_turn()))
    verdict = "yes" if judge.sample.answers[0].endswith("True") else "no"
    assert judge.oracle_turn().thought == f" text_0 {verdict} "


@pytest.mark.parametrize("name", ["ArmZoom", "ArmPreference"])
def test_oracle_answers_where_there_is_no_image(name: str) -> None:
    sample = judging_sample(
        id="1", instruction="?", truth=JudgingTruth(candidates=("a", "b")), verdict=2
    )
    env, judge = made(name, data=Given(sample))
    env.reset(seed=0)
    assert judge.oracle_turn().answer == "Overall Judgment: Answer 2 is better"


@pytest.mark.parametrize(
    ("options", "near"),
    [
        ({"preset": "trian"}, "train"),
        ({"reward": "stage_2"}, "stage2"),
        ({"mode": "agents"}, "agent"),
        ({"compat": "arms"}, "arm"),
        ({"turn": 3}, "turns"),
        ({"prompt": "breif"}, "brief"),
    ],
)
def test_option_that_is_unknown_gets_the_nearest_as_a_suggestion(
    options: dict[str, Any], near: str
) -> None:
    with pytest.raises(UnknownNameError, match=near):
        made("ArmDoc", **options)


@pytest.mark.parametrize("name", ["ArmZoom", "ArmPreference"])
def test_procedural_scenes_are_shown_too_small_to_read(name: str) -> None:
    for preset, side in (("train", 1024), ("eval", 1024), ("tiny", 96)):
        env, judge = made(name, preset=preset)
        observation, _ = env.reset(seed=0)
        if judge.sample.images:
            assert max(observation["images"][0].shape) == side
            assert max(judge.sample.images[0].size) > side


@pytest.mark.parametrize(
    "options",
    [{"turns": "3"}, {"turns": 0}, {"turns": 1}, {"view_side": 0}, {"tool_characters": -1}],
)
def test_count_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        made("ArmDoc", **options)


def opening_of(name: str, **options: Any) -> str:
    env, _ = made(name, **options)
    return str(env.reset(seed=0)[0]["text"])


@pytest.mark.parametrize(
    ("name", "options", "names"),
    [
        ("ArmZoom", {}, "original_image, those of images that tools return"),
        ("ArmZoom", {"dialect": "qwen3"}, ""),  # it addresses images by their index
        ("ArmDoc", {}, ""),  # its tools take the name of the document
        ("ArmIF", {}, "text_0"),
        ("ArmIF", {"mode": "no_tool"}, ""),
    ],
)
def test_prompt_lists_the_names_that_a_tool_takes(
    name: str, options: dict[str, Any], names: str
) -> None:
    text = opening_of(name, **options)
    assert ("Names you can give to tools:" in text) == bool(names)
    assert not names or f"Names you can give to tools: {names}." in text


def test_prompt_states_the_turns_and_explains_failed_calls() -> None:
    text = opening_of("ArmDoc", turns=4)
    assert "You have 4 turns: at most 3 tool calls, and the last turn must be your answer." in text
    assert "correct the call and try again" in text
    assert "at most 1 tool call," in opening_of("ArmDoc", turns=2)
    assert "turns" not in opening_of("ArmDoc", mode="no_tool")


def test_prompt_explains_wrong_responses_and_how_to_compare_them() -> None:
    assert "name the one that is least wrong" in opening_of("ArmZoom")
    compared = "the fewest wrong statements is the best"
    assert compared in opening_of("ArmPreference")
    assert compared not in opening_of("ArmPreference", candidates=1)
    assert compared not in opening_of("ArmZoom")


def test_source_without_documents_is_refused() -> None:
    sample = judging_sample(
        id="1", instruction="?", truth=JudgingTruth(candidates=("a",)), verdict=True
    )
    with pytest.raises(ConfigurationError, match="library"):
        made("ArmDoc", data=Given(sample))
