"""Tests VSR, TallyQA, GQA and curated rows: their layouts, and unusable rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

from visenv.data.open import open_data
from visenv.data.rows import RowSource
from visenv.envs.mags.datasets.vsr import as_question
from visenv.errors import DataError, UnknownNameError
from visenv.types import QuestionTruth


def photo(path: Path, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (60, 80, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(path)


def lines(path: Path, *rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def vsr(tmp_path: Path) -> Path:
    photo(tmp_path / "images" / "1.jpg")
    photo(tmp_path / "images" / "train2017" / "2.jpg")
    row = {"image": "1.jpg", "caption": "The cat is under the table.", "label": 1}
    lines(
        tmp_path / "data" / "splits" / "random" / "test.jsonl",
        {**row, "relation": "under"},
        {**row, "image": "2.jpg", "label": 0},
        {**row, "label": 2},
        {**row, "image": "gone.jpg"},
        {**row, "image": "../1.jpg"},
        {**row, "caption": ""},
        ["no object"],
    )
    return tmp_path


@pytest.fixture
def tallyqa(tmp_path: Path) -> Path:
    photo(tmp_path / "VG_100K_2" / "7.jpg")
    row = {"image": "VG_100K_2/7.jpg", "question": "How many dogs?", "question_id": 5}
    rows = [
        {**row, "answer": 3, "issimple": False, "data_source": "amt"},
        {**row, "question_id": 6, "answer": 0, "issimple": True},
        {**row, "question_id": 7, "answer": True},
        {**row, "question_id": 8, "answer": -1},
        {**row, "question_id": 9, "answer": "3"},
        {**row, "answer": 1},
        "text",
    ]
    (tmp_path / "test.json").write_text(json.dumps(rows))
    return tmp_path


@pytest.fixture
def gqa(tmp_path: Path) -> Path:
    photo(tmp_path / "images" / "n12.jpg")
    row = {"imageId": "n12", "question": "What is red?", "answer": "bus"}
    rows = {
        "01": {**row, "types": {"structural": "query"}},
        "02": {**row, "answer": "no", "types": {"structural": "verify"}},
        "03": {**row, "imageId": "gone"},
        "04": {**row, "answer": 4},
        "05": None,
    }
    (tmp_path / "testdev_balanced_questions.json").write_text(json.dumps(rows))
    return tmp_path


def opened(text: str) -> RowSource:
    return open_data(text)


def test_vsr_asks_whether_a_caption_is_true(vsr: Path) -> None:
    source = opened(f"vsr:{vsr}")
    assert [(each.question, each.answers) for each in (source[0], source[1])] == [
        ("Is it true that the cat is under the table?", ("yes",)),
        ("Is it true that the cat is under the table?", ("no",)),
    ]
    assert [each.id for each in (source[0], source[1])] == [
        "vsr-random-test-1",
        "vsr-random-test-2",
    ]
    assert source[0].kind == "relation"
    assert source[0].truth_as(QuestionTruth).labels == {"relation": "under"}
    assert source[1].images[0].size == (80, 60)
    problems = [str(each.problem) for each in source.problems]
    assert len(source) == 2
    assert len(problems) == 5
    for part, problem in zip(
        ("the label must be 0 or 1, got 2", "no image", "leads out", "no caption", "object"),
        problems,
        strict=True,
    ):
        assert part in problem


@pytest.mark.parametrize(
    ("caption", "question"),
    [
        ("A dog is on the sofa", "Is it true that a dog is on the sofa?"),
        (" The bus. ", "Is it true that the bus?"),
    ],
)
def test_caption_becomes_a_question(caption: str, question: str) -> None:
    assert as_question(caption) == question


def test_tallyqa_asks_for_counts(tallyqa: Path) -> None:
    source = opened(f"tallyqa:{tallyqa}")
    assert [(each.id, each.answers, each.kind) for each in (source[0], source[1])] == [
        ("tallyqa-test-5", ("3",), "counting"),
        ("tallyqa-test-6", ("0",), "counting"),
    ]
    assert source[0].truth_as(QuestionTruth).labels == {"complexity": "complex"}
    assert len(source) == 2
    assert len(source.problems) == 5


def test_gqa_is_keyed_by_id(gqa: Path) -> None:
    source = opened(f"gqa:{gqa}")
    assert [(each.id, each.answers, each.kind) for each in (source[0], source[1])] == [
        ("gqa-01", ("bus",), "query"),
        ("gqa-02", ("no",), "verify"),
    ]
    assert len(source.problems) == 3


@pytest.mark.parametrize(
    "text", ["vsr:{}?version=rand", "vsr:{}?split=val", "tallyqa:{}?split=dev", "gqa:{}?split=test"]
)
def test_parts_that_there_are_not_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        opened(text.format(tmp_path))


@pytest.mark.parametrize("name", ["vsr", "tallyqa", "gqa", "mags"])
def test_empty_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Expected"):
        opened(f"{name}:{tmp_path}")


def test_tallyqa_is_played_with_the_counting_reward(tallyqa: Path) -> None:
    env = gym.make("visenv/MagsZoom-v0", data=f"tallyqa:{tallyqa}", magnifier="lanczos")
    env.reset(seed=0, options={"index": 0})
    env.step("<think>one two three four five<zoom>[[0, 0, 20, 20]]</zoom></think>")
    _, _, terminated, _, info = env.step("<rethink>so</rethink><answer>3</answer>")
    assert terminated
    assert info["step"].terms["zoom"] == pytest.approx(1 / 3)
    assert info["step"].metrics["accuracy"] == 1


def test_curated_rows_are_read_with_their_labels(tmp_path: Path) -> None:
    photo(tmp_path / "images" / "a.png")
    row = {
        "id": "q1",
        "question": "How many?",
        "images": ["images/a.png"],
        "response": "4",
        "kind": "counting",
        "dataset": "tallyqa",
        "difficulty": "hard",
    }
    lines(
        tmp_path / "stage2.jsonl",
        row,
        {**row, "id": "q2", "images": []},
        {**row, "id": "q3", "images": ["images/b.png"]},
        {**row, "id": "q4", "dataset": None},
    )
    source = opened(f"mags:{tmp_path}?stage=2")
    assert len(source) == 1
    assert source[0].answers == ("4",)
    assert source[0].truth_as(QuestionTruth).labels["set"] == "tallyqa hard"
    assert len(source.problems) == 3
