"""Tests judging items from rows of V*Bench, MMLongBench-Doc and MP-DocVQA, and plays them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

import visenv  # noqa: F401 - registers the environments
from tests.text_documents import TextDocument
from visenv.cli import main
from visenv.curation.lines import JsonLines
from visenv.documents.library import FolderLibrary, write_pages
from visenv.envs.arm.curation.rows import opened, question_of
from visenv.errors import DataError

WRITER = ["--policy", "visenv.envs.arm.curation:ScriptedGenerator"]
PERCEPTION, DOCUMENT = "fine_grained_perception.jsonl", "multimodal_long_document.jsonl"


def photo(path: Path, value: int = 90) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(np.full((80, 60, 3), value, np.uint8)).save(path)


def played(env_id: str, folder: Path) -> list[float]:
    """Return the oracle's accuracy on every item."""
    env = gym.make(env_id, data=f"armbench:{folder}")
    base: Any = env.unwrapped
    assert base.source.problems == []
    scores = []
    for index in range(len(base.source)):
        env.reset(options={"index": index})
        over = False
        while not over:
            *_, terminated, truncated, info = env.step(base.grammar.compose(base.oracle_turn()))
            over = terminated or truncated
        scores.append(info["step"].metrics["accuracy"])
    return scores


def run(*words: str) -> None:
    assert main(["data", *words]) == 0


def test_items_of_vstar_bench_ask_openly(tmp_path: Path) -> None:
    photo(tmp_path / "vstar" / "direct_attributes" / "a.jpg")
    row = {
        "target_object": ["hat"],
        "bbox": [[5, 5, 20, 20]],
        "question": "What is the color of the hat?",
        "options": ["The color of the hat is red.", "The color of the hat is blue."],
    }
    (tmp_path / "vstar" / "direct_attributes" / "a.json").write_text(json.dumps(row))
    questions, bench = tmp_path / "q.jsonl", tmp_path / "bench"
    run("questions", "ArmVQA-v0", "--data", f"vstar:{tmp_path / 'vstar'}", "--out", str(questions))
    run("armbench", str(questions), *WRITER, "--out", str(bench / PERCEPTION))
    (line,) = JsonLines(bench / PERCEPTION)
    item = line.row
    assert "(A)" not in item["question"]
    assert item["answer"] == "The color of the hat is red."
    assert played("visenv/ArmZoom-v0", bench) == [1.0]


def mp_docvqa(folder: Path) -> str:
    for page in range(3):
        photo(folder / "images" / f"ab_p{page}.png", 80 * page)
    rows = [
        {
            "questionId": number,
            "question": "Which colour has the lantern?",
            "doc_id": "ab",
            "page_ids": ["ab_p0", "ab_p1", "ab_p2"],
            "answers": ["red"],
            "answer_page_idx": 1,
        }
        for number in (1, 2)
    ]
    (folder / "val.json").write_text(json.dumps({"data": rows}))
    return f"mp_docvqa:{folder}"


def test_items_of_mp_docvqa_carry_their_document(tmp_path: Path) -> None:
    data, questions = mp_docvqa(tmp_path / "mp"), tmp_path / "q.jsonl"
    words = ["--data", data, "--documents", str(tmp_path / "bench" / "documents")]
    run("questions", "ArmDocVQA-v0", *words, "--out", str(questions))
    first = next(iter(JsonLines(questions))).row
    assert first["images"] == []
    assert [Path(path).name for path in first["evidence"]] == ["ab_2.png"]
    with PIL.Image.open(first["evidence"][0]) as page:
        assert np.asarray(page)[0, 0].tolist() == [80, 80, 80]
    # The writer gets the page with the answer; the item does not use this page as an overview.
    assert question_of(first).images == tuple(first["evidence"])
    run("armbench", str(questions), *WRITER, "--out", str(tmp_path / "bench" / DOCUMENT))
    assert played("visenv/ArmDoc-v0", tmp_path / "bench") == [1.0, 1.0]


def test_training_rows_of_mp_docvqa_are_judged_with_the_document(tmp_path: Path) -> None:
    data, judge = mp_docvqa(tmp_path / "mp"), tmp_path / "judge"
    questions, pairs = str(tmp_path / "q.jsonl"), str(tmp_path / "pairs.jsonl")
    words = ["--data", data, "--documents", str(judge / "documents")]
    run("questions", "ArmDocVQA-v0", *words, "--out", questions)
    run("negatives", questions, *WRITER, "--out", pairs)
    run("arrange", pairs, "--both-orders", "--out", str(judge / DOCUMENT))
    assert played("visenv/ArmDoc-v0", judge) == [1.0] * 4


def test_items_of_mmlongbench_are_played_where_its_documents_are(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    for page in (1, 2):
        photo(folder / "documents" / f"report_{page}.jpg")
    row = {
        "doc_id": "report.pdf",
        "doc_type": "Brochure",
        "question": "How many lanterns are there?",
        "answer": "7",
        "evidence_pages": "[2]",
        "evidence_sources": "['Chart']",
        "answer_format": "Int",
    }
    absent = {**row, "answer": "Not answerable", "answer_format": "None", "evidence_pages": "[]"}
    (folder / "samples.json").write_text(json.dumps([row, absent]))
    questions, bench = tmp_path / "q.jsonl", tmp_path / "bench"
    data = ["--data", f"mmlongbench:{folder}", "--documents", str(bench / "documents")]
    run("questions", "ArmDocVQA-v0", *data, "--out", str(questions))
    run("armbench", str(questions), *WRITER, "--out", str(bench / DOCUMENT))
    assert len(list(JsonLines(bench / DOCUMENT))) == 1  # "Not answerable" can be guessed
    assert played("visenv/ArmDoc-v0", bench) == [1.0]


# ---------------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("question", "response", "expected"),
    [
        ("Which?\n(A) red\n(B) blue\nAnswer with the letter.", "B", ("Which?", "blue")),
        ("Which?\n(A) red\n(B) blue", "(B).", ("Which?", "blue")),
        ("Which?\n(A) red\n(B) blue", "C", ("Which?\n(A) red\n(B) blue", "C")),
        ("Who is (A) here?", "A", ("Who is (A) here?", "A")),
        ("(A) red\n(B) blue", "B", ("(A) red\n(B) blue", "B")),  # no question would remain
        ("Who?", "Ada", ("Who?", "Ada")),
    ],
)
def test_lettered_question_becomes_open(
    question: str, response: str, expected: tuple[str, str]
) -> None:
    assert opened(question, response) == expected


@given(st.text(), st.text())
def test_question_of_any_row_is_opened_or_left(question: str, response: str) -> None:
    asked, answer = opened(question, response)
    assert (asked, answer) == (question, response) or asked in question


def test_document_that_was_written_is_read_again(tmp_path: Path) -> None:
    document = TextDocument("a.b", ["one", "", "three"])
    files = write_pages(document, tmp_path)
    assert [file.name for file in files] == ["a.b_1.png", "a.b_2.png", "a.b_3.png"]
    again = FolderLibrary(tmp_path).document("a.b")
    assert len(again) == 3
    assert [again.page_text(page) for page in (1, 2, 3)] == ["one", "", "three"]
    for page in (1, 2, 3):
        same = again.page_image(page, 500).pixels == document.page_image(page, 500).pixels
        assert same.all()


@pytest.mark.parametrize("name", ["../a", "a/b", ".hidden", "a\nb", ""])
def test_document_cannot_be_written_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be that of a file"):
        write_pages(TextDocument(name, ["x"]), tmp_path / "pages")
    assert not (tmp_path / "pages").exists()
