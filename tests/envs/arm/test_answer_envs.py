"""Tests ArmVQA and ArmDocVQA: prompts, tools, and published questions."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.env.doc import ArmDoc
from visenv.envs.arm.env.vqa import AnswerEnv
from visenv.envs.arm.ground_truth import DocumentTruth
from visenv.envs.arm.presets import PRESETS
from visenv.envs.arm.world.reports import ReportQuestions
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Image, QuestionTruth, Sample, ToolCalled

ENVS = ["ArmVQA", "ArmDocVQA"]


def made(name: str, **options: Any) -> tuple[Any, AnswerEnv]:
    env = gym.make(f"visenv/{name}-v0", **options)
    base = env.unwrapped
    assert isinstance(base, AnswerEnv)
    return env, base


def oracle_episode(env: Any, base: AnswerEnv, **reset: Any) -> tuple[float, dict[str, float]]:
    env.reset(**reset)
    terminated = truncated = False
    while not (terminated or truncated):
        turn = base.grammar.compose(base.oracle_turn())
        _, reward, terminated, truncated, info = env.step(turn)
    assert terminated
    return float(reward), dict(info["step"].metrics)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ENVS)
def test_oracle_looks_and_is_right(name: str, preset: str) -> None:
    env, base = made(name, preset=preset)
    for seed in range(3):
        reward, metrics = oracle_episode(env, base, seed=seed)
        looked = "hit" if name == "ArmVQA" else "found"
        assert reward == pytest.approx(1.5)
        assert metrics == {"accuracy": 1.0, looked: 1.0}


@pytest.mark.parametrize("name", ENVS)
def test_episode_without_tools_is_one_turn(name: str) -> None:
    env, base = made(name, mode="no_tool")
    observation, _ = env.reset(seed=0)
    assert base.tools == {}
    assert "tool_call" not in observation["text"]
    assert base.limits.turns == 1


@pytest.mark.parametrize("name", ENVS)
def test_prompt_states_the_number_of_turns_and_names_only_inputs_of_tools(name: str) -> None:
    env, base = made(name, turns=3)
    observation, _ = env.reset(seed=0)
    assert "You have 3 turns" in observation["text"]
    assert base.sample.question in observation["text"]
    # The page tools take no image, so that the prompt does not list names of images.
    assert ("names that the tools take" in observation["text"]) == (name == "ArmVQA")


@pytest.mark.parametrize("preset", ["default", "tiny"])
def test_question_about_a_document_does_not_reveal_its_answer(preset: str) -> None:
    world = ReportQuestions(preset)
    answers: Counter[str] = Counter()
    for seed in range(60):
        sample = world.sample(np.random.default_rng(seed))
        (right,) = sample.answers
        answers[right] += 1
        assert right.casefold() not in sample.question.casefold()
    assert answers.most_common(1)[0][1] <= 20


def test_pages_can_be_zoomed_into_only_with_the_option() -> None:
    for name in ("ArmDocVQA", "ArmDoc"):
        plain, zoomed = gym.make(f"visenv/{name}-v0"), gym.make(f"visenv/{name}-v0", zoom=True)
        assert "image_zoom_in_tool" not in plain.unwrapped.tools  # type: ignore[attr-defined]
        assert [*zoomed.unwrapped.tools] == [  # type: ignore[attr-defined]
            "doc_page_retrieval_by_query",
            "doc_page_retrieval_by_index",
            "image_zoom_in_tool",
        ]


@pytest.mark.parametrize("name", ["ArmDocVQA", "ArmDoc"])
def test_page_that_was_retrieved_can_be_enlarged(name: str) -> None:
    env = gym.make(f"visenv/{name}-v0", zoom=True)
    base = env.unwrapped
    assert isinstance(base, AnswerEnv | ArmDoc)
    env.reset(seed=0)
    page = {"filename": base.document(), "image_idx": 1}
    env.step(turn("doc_page_retrieval_by_index", page))
    part = {"image": "observation_1", "bbox_2d": [0, 0, 250, 100]}
    observation, *_, info = env.step(turn("image_zoom_in_tool", part))
    (called,) = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert called.ok
    # A quarter of the width of a page that is drawn three times as large.
    width, _ = base.store.images["observation_1"].size
    assert observation["images"][0].shape[1] == pytest.approx(3 * width / 4, abs=2)
    assert called.detail["origin"] == "observation_1"
    # A zoom into this crop is also taken from the larger drawing.
    again = {"image": "observation_2", "bbox_2d": [0, 0, 500, 1000]}
    *_, info = env.step(turn("image_zoom_in_tool", again))
    (called,) = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert called.detail["origin"] == "observation_1"
    assert called.detail["box"][2] == pytest.approx(3 * width / 8, abs=2)


def test_pages_side_by_side_are_cut_as_they_are_shown() -> None:
    env, base = made("ArmDocVQA", zoom=True)
    env.reset(seed=0)
    truth: Any = base.sample.ground_truth
    env.step(turn("doc_page_retrieval_by_query", {"filename": truth.document, "query": "page"}))
    width, height = base.store.images["observation_1"].size
    whole = {"image": "observation_1", "bbox_2d": [0, 0, 1000, 1000]}
    *_, info = env.step(turn("image_zoom_in_tool", whole))
    (called,) = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert called.detail["box"] == [0, 0, width, height]


def turn(name: str, arguments: dict[str, Any]) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<think>look</think><tool_call>{body}</tool_call>"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"judge": "gpt"}, ConfigurationError, "rules"),
        ({"judge": "opnai:gpt"}, UnknownNameError, "openai"),
        ({"reward": "stage3"}, UnknownNameError, "stage"),
        ({"zoom": "yes"}, ConfigurationError, "true or false"),
    ],
)
def test_option_that_is_invalid_is_explained(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        gym.make("visenv/ArmDocVQA-v0", **options)


def test_sample_without_an_image_or_an_answer_is_refused() -> None:
    env, _ = made("ArmVQA")
    blind = Sample("1", "What?", (), ("a",), "", QuestionTruth())
    with pytest.raises(DataError, match="no image"):
        env.reset(options={"sample": blind})
    picture = Image.from_pixels(np.zeros((64, 64, 3), np.uint8))
    open_question = Sample("1", "What?", (picture,), (), "", QuestionTruth())
    with pytest.raises(DataError, match="no published answer"):
        env.reset(options={"sample": open_question})


# ---------------------------------------------------------------------------- the procedural world


def test_report_questions_are_those_of_the_judging_world() -> None:
    world = ReportQuestions()
    for seed in range(10):
        sample = world.sample(np.random.default_rng(seed))
        truth = sample.truth_as(DocumentTruth)
        assert set(sample.answers) < set(truth.options)
        assert list(truth.options) == sorted(set(truth.options))
        pages = world.library.document(truth.document)
        assert 1 <= min(truth.evidence_pages) <= max(truth.evidence_pages) <= len(pages)
        assert truth.gold_query


def test_report_questions_of_held_out_documents_are_about_others() -> None:
    names = [
        {
            ReportQuestions("tiny", documents=span)
            .sample(np.random.default_rng(seed))
            .truth_as(DocumentTruth)
            .document
            for seed in range(20)
        }
        for span in ((0, 5), (5, 10))
    ]
    assert not names[0] & names[1]


# ---------------------------------------------------------------------------- published questions


def mp_docvqa(folder: Path) -> Path:
    (folder / "images").mkdir(parents=True)
    for page in range(3):
        image = PIL.Image.new("RGB", (300, 400), (250, 250, 250 - 80 * page))
        image.save(folder / "images" / f"doc_p{page}.png")
    row = {
        "questionId": 7,
        "question": "What is the date?",
        "doc_id": "doc",
        "page_ids": ["doc_p0", "doc_p1", "doc_p2"],
        "answers": ["1 May 1969", "May 1, 1969"],
        "answer_page_idx": 1,
    }
    (folder / "val.json").write_text(json.dumps({"data": [row]}))
    return folder


def test_mp_docvqa_is_played_and_scored_by_anls(tmp_path: Path) -> None:
    env, base = made("ArmDocVQA", data=f"mp_docvqa:{mp_docvqa(tmp_path)}")
    reward, metrics = oracle_episode(env, base, options={"index": 0})
    assert reward == pytest.approx(1.5)
    assert metrics == {"accuracy": 1.0, "found": 1.0}
    # One letter of ten is wrong: ANLS 0.9. Format 0.3, answer 0.7 * 0.9, success 0.5 * 0.9, and try
    # 0.1 * (1 - 0.9).
    env.reset(options={"index": 0})
    env.step(turn("doc_page_retrieval_by_index", {"filename": "doc", "image_idx": 2}))
    _, reward, *_ = env.step("<think>so</think><answer>1 May 1968</answer>")
    assert reward == pytest.approx(0.3 + 0.63 + 0.45 + 0.01)


def test_mmlongbench_is_played_and_scored_by_the_format_of_the_answer(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    for page in (1, 2):
        PIL.Image.new("RGB", (60, 80)).save(tmp_path / "documents" / f"report_{page}.jpg")
    rows = [
        {
            "doc_id": "report.pdf",
            "doc_type": "Brochure",
            "question": "How many units were sold?",
            "answer": "17",
            "evidence_pages": "[2]",
            "evidence_sources": "['Pure-text (Plain-text)']",
            "answer_format": "Int",
        },
        {
            "doc_id": "report.pdf",
            "doc_type": "Brochure",
            "question": "Who was the chair?",
            "answer": "Not answerable",
            "evidence_pages": "[]",
            "evidence_sources": "[]",
            "answer_format": "None",
        },
    ]
    (tmp_path / "samples.json").write_text(json.dumps(rows))
    env, base = made("ArmDocVQA", data=f"mmlongbench:{tmp_path}")
    assert oracle_episode(env, base, options={"index": 0})[0] == pytest.approx(1.5)
    observation, _ = env.reset(options={"index": 0})
    assert "Not answerable" in observation["text"]
    *_, info = env.step("<think>so</think><answer>17.0</answer>")
    assert info["step"].metrics == {"accuracy": 1.0, "found": 0.0}
    # No page proves that the answer is missing; a look at any page of the document counts.
    reward, metrics = oracle_episode(env, base, options={"index": 1})
    assert reward == pytest.approx(1.0)
    assert metrics == {"accuracy": 1.0}


def test_published_overview_is_shown_in_place_of_ours() -> None:
    env = gym.make("visenv/ArmDoc-v0")
    base = env.unwrapped
    assert isinstance(base, ArmDoc)
    env.reset(seed=0)
    published = Image.from_pixels(np.full((50, 70, 3), 7, np.uint8))
    sample = base.sample
    given = Sample(
        sample.id, sample.question, (published,), sample.answers, "", sample.ground_truth
    )
    observation, _ = env.reset(options={"sample": given})
    (shown,) = observation["images"]
    assert (shown == published.pixels).all()


def test_episode_continues_after_pickling_with_a_page_to_enlarge() -> None:
    env, base = made("ArmDocVQA", zoom=True)
    env.reset(seed=0)
    env.step(turn("doc_page_retrieval_by_index", {"filename": base.document(), "image_idx": 1}))
    part = turn("image_zoom_in_tool", {"image": "observation_1", "bbox_2d": [0, 0, 250, 100]})
    again = pickle.loads(pickle.dumps(env))
    one, other = (each.step(part)[0]["images"][0] for each in (env, again))
    assert (one == other).all()
