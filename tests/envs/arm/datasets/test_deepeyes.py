"""Tests DeepEyes in verl's parquet layout."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arm.datasets.deepeyes import DeepEyes, DeepEyesTruth
from visenv.errors import DataError

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.component("pyarrow")


def encoded(side: int = 40) -> dict[str, Any]:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (side, 30)).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def row(number: int, **changes: Any) -> dict[str, Any]:
    made = {
        "data_source": "vstar",
        "prompt": [
            {"role": "system", "content": "You may zoom."},
            {"role": "user", "content": "<image>\nWhat colour is the cup? Think first."},
        ],
        "images": [encoded()],
        "ability": "vl_chat",
        "env_name": "visual_toolbox_v2",
        "reward_model": {"ground_truth": "The cup is red.", "style": "model"},
        "extra_info": {
            "question": "What colour is the cup?",
            "answer": "red",
            "index": number,
            "split": "train",
        },
    }
    return {**made, **changes}


def write(folder: Path, rows: list[dict[str, Any]], name: str = "data_v0.8") -> Path:
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet", row_group_size=2)
    return folder


def test_row(tmp_path: Path) -> None:
    source = DeepEyes(write(tmp_path, [row(0), row(1, images=[encoded(50), encoded(60)]), row(2)]))
    sample = source[1]
    assert sample.id == "deepeyes-data_v0.8-1"
    assert sample.question == "What colour is the cup?"
    assert sample.answers == ("The cup is red.",)
    assert sample.kind == "vstar"
    assert sample.ground_truth == DeepEyesTruth(
        ability="vl_chat", env_name="visual_toolbox_v2", style="model"
    )
    assert [image.size for image in sample.images] == [(50, 30), (60, 30)]


def test_score_forgives_spelling_but_no_other_wording(tmp_path: Path) -> None:
    source = DeepEyes(write(tmp_path, [row(0)]))
    said = ["the cup is red", "The cup is RED!", "red", "The cup is blue.", ""]
    assert [source.score(answer, source[0]) for answer in said] == [1, 1, 0, 0, 0]


def test_question_is_the_last_user_message_by_default(tmp_path: Path) -> None:
    extra = {"question": "", "answer": "red", "index": 0, "split": "train"}
    source = DeepEyes(write(tmp_path, [row(0, extra_info=extra)]))
    assert source[0].question == "What colour is the cup? Think first."


def test_files_that_count_from_0_each(tmp_path: Path) -> None:
    write(tmp_path, [row(0)], "data_0.1.2_visual_toolbox_v2")
    write(tmp_path, [row(0)], "data_thinklite_reasoning_acc")
    source = DeepEyes(tmp_path)
    assert len(source) == 2
    assert source.problems == []
    assert source[0].id != source[1].id


@pytest.mark.parametrize(
    ("answer", "reference", "score"),
    [("A", "A", 1.0), ("", "A", 0.0), ("the", "A", 0.0), ("−5", "5", 0.0), ("two", "2", 1.0)],
)
def test_short_answers_are_compared_with_their_signs(
    tmp_path: Path, answer: str, reference: str, score: float
) -> None:
    write(tmp_path, [row(0, reward_model={"ground_truth": reference, "style": "model"})])
    source = DeepEyes(tmp_path)
    assert source.score(answer, source[0]) == score


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"reward_model": None}, "no reward_model"),
        ({"reward_model": {"ground_truth": "", "style": "model"}}, "no ground_truth"),
        ({"reward_model": {"ground_truth": "?!", "style": "model"}}, "no ground_truth"),
        ({"extra_info": None}, "no extra_info"),
        ({"data_source": None}, "no data_source"),
        (
            {"extra_info": {"question": None, "answer": "x", "index": 1}, "prompt": []},
            "neither extra_info.question nor a user message",
        ),
        ({"extra_info": {"question": "q", "answer": "x", "index": 0}}, "used before"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: dict[str, Any], problem: str
) -> None:
    source = DeepEyes(write(tmp_path, [row(0), row(1, **bad), row(2)]))
    assert len(source) == 2
    (listed,) = source.problems
    assert listed.row == 2
    assert problem in listed.problem


def test_row_without_an_image_is_known_when_it_is_asked_for(tmp_path: Path) -> None:
    source = DeepEyes(write(tmp_path, [row(0, images=[]), row(1)]))
    with pytest.raises(DataError, match=r"data_v0\.8\.parquet:1: no image under images"):
        _ = source[0]


def test_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match=r"data\.parquet is not a parquet file"):
        DeepEyes(tmp_path)
