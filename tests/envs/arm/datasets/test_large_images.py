"""Tests MME-RealWorld and VisualProbe in their layouts, and bad rows."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arm.datasets.mme_realworld import MMERealWorld
from visenv.envs.arm.datasets.visual_probe import VisualProbe
from visenv.errors import DataError, UnknownNameError

Row = dict[str, Any]


def png(size: tuple[int, int] = (40, 30)) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size).save(buffer, "PNG")
    return buffer.getvalue()


def mme(number: int, **changes: Any) -> Row:
    made = {
        "Question_id": f"Perception/OCR/{number}",
        "Image": "ocr/pictures/a.png",
        "Text": "What does the sign say?",
        "Question Type": "Multiple Choice",
        "Answer choices": ["(A) STOP", "(B) GO", "(E) none"],
        "Ground truth": "B",
        "Task": "Perception",
        "Subtask": "OCR",
        "Category": "signage",
    }
    made["Answer choices"] = ["(A) STOP", "(B) GO", "(C) The image does not feature the sign."]
    return {**made, **changes}


def write_mme(folder: Path, *rows: Row, name: str = "MME_RealWorld.json") -> Path:
    (folder / "data" / "pictures").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "pictures" / "a.png").write_bytes(png())
    (folder / name).write_text(json.dumps(rows))
    return folder


@pytest.mark.parametrize(
    ("version", "name"), [("full", "MME_RealWorld.json"), ("lite", "MME-RealWorld-Lite.json")]
)
def test_mme_realworld_of_the_authors(tmp_path: Path, version: str, name: str) -> None:
    source = MMERealWorld(write_mme(tmp_path, mme(1), name=name), version)
    assert source.problems == []
    sample = source[0]
    assert sample.id == f"mme_realworld-{version}-Perception/OCR/1"
    assert sample.question.splitlines()[1:3] == ["(A) STOP", "(B) GO"]
    assert (sample.answers, sample.kind) == (("B",), "Perception")
    assert sample.ground_truth.labels == {"task": "Perception", "domain": "OCR"}
    assert sample.images[0].size == (40, 30)
    assert [source.score(answer, sample) for answer in ("(B)", "GO", "A", "")] == [1, 1, 0, 0]


@pytest.mark.component("pyarrow")
def test_mme_realworld_of_lmms_eval(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {
        "index": 3,
        "bytes": base64.b64encode(png((50, 20))).decode(),
        "question": "What does the sign say?",
        "multi-choice options": ["(A) STOP", "(B) GO"],
        "answer": "A",
        "category": "Reasoning/Monitoring",
        "l2-category": "intention",
    }
    (tmp_path / "data").mkdir()
    table = pa.Table.from_pylist([row])
    pq.write_table(table, tmp_path / "data" / "train-00000-of-00001.parquet")
    sample = MMERealWorld(tmp_path)[0]
    assert sample.ground_truth.labels == {"task": "Reasoning", "domain": "Monitoring"}
    assert (sample.answers, sample.images[0].size) == (("A",), (50, 20))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"Image": "ocr/b.png"}, "no image"),
        ({"Image": "../../../etc/passwd"}, "no image"),
        ({"Image": None}, "no image under Image"),
        ({"Ground truth": "D"}, "not among the 3 options"),
        ({"Answer choices": ["(A) x", "(C) y"]}, "not lettered"),
        ({"Answer choices": ["(A) x", 7]}, "not lettered"),
        ({"Answer choices": "x"}, "no list of options"),
        ({"Text": ""}, "no Text"),
    ],
)
def test_row_of_mme_realworld_that_is_invalid_is_listed(
    tmp_path: Path, changes: Row, problem: str
) -> None:
    source = MMERealWorld(write_mme(tmp_path, mme(1), {**mme(2), **changes}))
    assert len(source) == 1
    assert problem in source.problems[0].problem


def test_version_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="lite"):
        MMERealWorld(write_mme(tmp_path, mme(1)), "light")
    with pytest.raises(DataError, match="Lite"):
        MMERealWorld(tmp_path, "lite")


# ---------------------------------------------------------------------------- VisualProbe


def probe(number: int, **changes: Any) -> Row:
    made = {
        "doc_id": number,
        "images": ["VisualProbe_Hard/1.png"],
        "problem": "<image>\nWhat number is on the van?",
        "solution": "42",
        "data_source": "visual_probe_hard",
    }
    return {**made, **changes}


def write_probe(folder: Path, *rows: Row) -> Path:
    (folder / "1.png").write_bytes(png())
    (folder / "val.json").write_text(json.dumps(rows))
    return folder


def test_visual_probe(tmp_path: Path) -> None:
    source = VisualProbe(write_probe(tmp_path, probe(0), probe(1, solution=7)))
    assert source.problems == []
    sample = source[0]
    assert (sample.question, sample.answers) == ("What number is on the van?", ("42",))
    assert sample.kind == "visual_probe_hard"
    assert sample.images[0].size == (40, 30)
    assert [source.score(answer, sample) for answer in ("42", "42.", "the 42", "24")] == [
        1,
        1,
        1,
        0,
    ]
    assert source[1].answers == ("7",)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"images": []}, "no image under images"),
        ({"images": ["VisualProbe_Hard/2.png"]}, "no image"),
        ({"problem": "<image>"}, "no question"),
        ({"solution": None}, "no solution"),
        ({"solution": True}, "no solution"),
    ],
)
def test_row_of_visual_probe_that_is_invalid_is_listed(
    tmp_path: Path, changes: Row, problem: str
) -> None:
    source = VisualProbe(write_probe(tmp_path, probe(0), {**probe(1), **changes}))
    assert len(source) == 1
    assert problem in source.problems[0].problem
