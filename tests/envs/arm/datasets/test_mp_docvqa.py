"""Tests ANLS with values by hand."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.datasets.mp_docvqa import MPDocVQA, anls, similarity_above
from visenv.envs.arm.ground_truth import DocumentTruth
from visenv.errors import DataError, ImageError, UnknownNameError


@pytest.mark.parametrize(
    ("answer", "references", "score"),
    [
        ("ITC Limited", ["itc limited", "ITC"], 1.0),
        ("itc  limited\n", ["ITC Limited"], 1.0),
        ("hello", ["helo"], 0.8),  # one deletion of five: 1 - 1/5
        ("abcd", ["abxy"], 0.5),  # 1 - 2/4: a similarity of the threshold counts
        ("abcd", ["axyz"], 0.0),  # 1 - 3/4
        ("cafe\u0301", ["caf\u00e9"], 1.0),
        ("", [""], 0.0),
        ("abcde", ["abcxy"], 0.6),  # 1 - 2/5
        ("abcde", ["abcxy", "abcdx"], 0.8),  # the closest reference counts
        ("", ["x"], 0.0),
        ("x" * 10_001, ["x" * 10_001], 0.0),  # too long to be an answer
    ],
)
def test_anls_by_hand(answer: str, references: list[str], score: float) -> None:
    assert anls(answer, references) == pytest.approx(score)


def test_anls_with_another_threshold() -> None:
    assert anls("abcd", ["abxy"], threshold=0.4) == 0.5
    assert similarity_above("abcd", "abxy") == 0.0  # MMLongBench-Doc leaves the threshold out
    assert similarity_above("Abcd", "abcd", 0.5) == 0.75  # this function distinguishes case


def test_anls_without_references() -> None:
    with pytest.raises(DataError, match="the sample has none"):
        anls("x", [])


@given(st.text(max_size=40), st.lists(st.text(max_size=40), min_size=1, max_size=3))
def test_score_is_0_or_above_the_threshold(answer: str, references: list[str]) -> None:
    score = anls(answer, references)
    assert score == 0 or 0.5 <= score <= 1
    assert anls(references[0], references) == float(references[0].strip() != "")


Row = dict[str, Any]

PAGES = ["ffbf0023_p0", "ffbf0023_p1", "ffbf0023_p2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for number, name in enumerate(PAGES):
        image = PIL.Image.new("RGB", (60 + 10 * number, 80), (40 * number, 0, 0))
        image.save(tmp_path / "images" / f"{name}.png")
    return tmp_path


def challenge(number: int, **changes: Any) -> Row:
    made = {
        "questionId": number,
        "question": "What is the date?",
        "doc_id": "ffbf0023",
        "page_ids": PAGES,
        "answers": ["1 May", "May 1"],
        "answer_page_idx": 1,
        "data_split": "val",
    }
    return {**made, **changes}


def imdb(number: int, **changes: Any) -> Row:
    made = {
        "question_id": number,
        "question": "What is the date?",
        "image_id": "ffbf0023",
        "image_name": PAGES,
        "imdb_doc_pages": 3,
        "answers": ["1 May"],
        "answer_page_idx": 2,
        "ocr_tokens": [["Dear", "Sir"], [], ["1", "May"]],
        "ocr_normalized_boxes": [np.zeros((2, 4)), np.zeros((0, 4)), np.zeros((2, 4))],
    }
    return {**made, **changes}


def write(folder: Path, *rows: Any, split: str = "val") -> Path:
    (folder / f"{split}.json").write_text(json.dumps({"dataset_split": split, "data": rows}))
    return folder


def test_challenge(folder: Path) -> None:
    source = MPDocVQA(write(folder, challenge(7)))
    assert source.problems == []
    sample = source[0]
    assert sample.id == "mp_docvqa-val-7"
    assert sample.question == "What is the date?"
    assert sample.answers == ("1 May", "May 1")
    assert sample.images == ()
    assert sample.ground_truth == DocumentTruth(document="ffbf0023", evidence_pages=(2,))
    document = source.library.document("ffbf0023")
    assert len(document) == 3
    assert [document.page_image(page, 1000).size for page in (1, 2, 3)] == [
        (60, 80),
        (70, 80),
        (80, 80),
    ]
    assert max(document.page_image(1, 40).size) == 40
    assert document.page_text(1) == ""


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_framework(folder: Path, suffix: str) -> None:
    rows = [{"version": 0.1, "dataset_type": "val"}, imdb(3), imdb(4, image_name=PAGES[:1])]
    rows[2]["answer_page_idx"] = 0
    path = folder / f"imdb_val{suffix}"
    if suffix == ".npy":
        array = np.empty(3, dtype=object)
        array[:] = rows
        np.save(path, array, allow_pickle=True)
    else:
        plain = [{**each, "ocr_normalized_boxes": []} for each in rows[1:]]
        path.write_text(json.dumps([rows[0], *plain]))
    source = MPDocVQA(folder)
    assert source.problems == []
    assert [source[index].id for index in range(2)] == ["mp_docvqa-val-3", "mp_docvqa-val-4"]
    document = source.library.document(source[0].ground_truth.document)
    assert [document.page_text(page) for page in (1, 2, 3)] == ["Dear Sir", "", "1 May"]
    assert source[0].ground_truth.evidence_pages == (3,)
    # Other pages of the same scan are another document.
    assert source[1].ground_truth.document == "ffbf0023-4"
    assert len(source.library.document("ffbf0023-4")) == 1


@pytest.mark.component("pyarrow")
def test_hub(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def page(side: int) -> dict[str, Any]:
        buffer = io.BytesIO()
        PIL.Image.new("RGB", (side, 80)).save(buffer, "PNG")
        return {"bytes": buffer.getvalue(), "path": None}

    written = {"page_ids": str(PAGES[:2]), "answers": "['1 May']", "answer_page_idx": "1"}
    images = {f"image_{n}": page(50 + n) if n <= 2 else None for n in range(1, 21)}
    rows = [
        {**challenge(1, **written, questionId="1"), **images},
        {**challenge(2, **written, questionId="2"), **images, "image_2": None},
        {**challenge(3, **written, questionId="3"), **images, "answer_page_idx": "2"},
    ]
    rows[1]["doc_id"] = "other"
    (tmp_path / "data").mkdir()
    shard = tmp_path / "data" / "val-00000-of-00001.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), shard)
    source = MPDocVQA(tmp_path)
    assert source[0].answers == ("1 May",)
    assert source[0].ground_truth == DocumentTruth(document="ffbf0023", evidence_pages=(2,))
    document = source.library.document("ffbf0023")
    assert [document.page_image(number, 1000).size[0] for number in (1, 2)] == [51, 52]
    with pytest.raises(DataError, match=r"Page 2 of 'other' .* holds no image bytes"):
        source.library.document("other").page_image(2, 1000)
    (problem,) = source.problems
    assert (problem.row, problem.problem) == (3, "answer_page_idx must be 0 to 1, got '2'")
    assert document.sha256 == MPDocVQA(tmp_path).library.document("ffbf0023").sha256
    with pytest.raises(DataError, match="holds no image bytes"):
        _ = source.library.document("other").sha256
    copy = pickle.loads(pickle.dumps(source))
    assert copy.library.document("ffbf0023").page_image(1, 1000).size == (51, 80)


def test_split_test_keeps_its_rows_and_reports_that_it_cannot_be_scored(folder: Path) -> None:
    row = challenge(1)
    del row["answers"], row["answer_page_idx"]
    source = MPDocVQA(write(folder, row, split="test"), split="test")
    assert source[0].ground_truth.evidence_pages == ()
    with pytest.raises(DataError, match="no published answers"):
        source.score("1 May", source[0])


def test_score_is_anls(folder: Path) -> None:
    source = MPDocVQA(write(folder, challenge(1, answers=["hello"])))
    assert source.score("HELO", source[0]) == pytest.approx(0.8)  # 1 - 1/5
    assert source.score("he", source[0]) == 0


def test_pages_and_documents_that_are_not_there(folder: Path) -> None:
    source = MPDocVQA(write(folder, challenge(1)))
    document = source.library.document("ffbf0023")
    for page in (0, -1, 4, 10**9):
        with pytest.raises(DataError, match="has pages 1 to 3"):
            document.page_image(page, 100)
        with pytest.raises(DataError, match="has pages 1 to 3"):
            document.page_text(page)
    with pytest.raises(DataError, match="Did you mean 'ffbf0023'"):
        source.library.document("ffbf0032")
    with pytest.raises(DataError, match="no document called"):
        source.library.document("../\0" * 10_000)
    (folder / "images" / "ffbf0023_p1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="Page 2 of 'ffbf0023' cannot be shown"):
        document.page_image(2, 100)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ([1], "expected an object"),
        (challenge(2, questionId=None), "no question_id"),
        (challenge(2, questionId=True), "no question_id"),
        (challenge(1), "used before"),
        (challenge(2, question=" "), "no question"),
        (challenge(2, page_ids=[]), "0 pages"),
        (challenge(2, page_ids=PAGES * 7), "21 pages"),
        (challenge(2, page_ids="ffbf0023_p0"), "expected a list"),
        (challenge(2, page_ids=[1, 2]), "must be a list of texts"),
        (challenge(2, page_ids=None), "expected a list"),
        (challenge(2, page_ids=["gone_p0"], answer_page_idx=0), "there is no image"),
        (challenge(2, page_ids=["../secret"], answer_page_idx=0), "leads out"),
        (challenge(2, answers="May"), "expected a list"),
        (challenge(2, answers=[7]), "must be a list of texts"),
        (challenge(2, answer_page_idx=3), "must be 0 to 2, got 3"),
        (challenge(2, answer_page_idx=-1), "must be 0 to 2, got -1"),
        (challenge(2, answer_page_idx="one"), "must be 0 to 2"),
        (challenge(2, answer_page_idx="9" * 5_000), "must be 0 to 2"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    folder: Path, bad: Any, problem: str
) -> None:
    source = MPDocVQA(write(folder, challenge(1), bad, challenge(3)))
    assert len(source) == 2
    (listed,) = source.problems
    assert (Path(listed.file).name, listed.row) == ("val.json", 2)
    assert problem in listed.problem


def test_mistakes_of_the_caller(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'val'"):
        MPDocVQA(folder, split="valid")
    with pytest.raises(DataError, match=r"Expected imdb_val\.npy or imdb_val\.json or val\.json"):
        MPDocVQA(folder)
    (folder / "imdb_val.npy").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"imdb_val\.npy is not a readable NumPy file"):
        MPDocVQA(folder)
    assert issubclass(ImageError, DataError)
