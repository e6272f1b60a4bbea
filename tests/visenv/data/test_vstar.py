"""Tests V*Bench in both layouts, and that its options, the first always right, are shuffled."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.data.vstar import VStarBench
from visenv.errors import DataError, ImageError
from visenv.types import QuestionTruth

OPTIONS = ["rubber", "cotton", "kevlar", "leather"]
QUESTION = "What is the material of the glove?"


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (100, 80)).save(path)


def annotate(folder: Path, category: str, name: str, **changes: Any) -> None:
    photo(folder / category / f"{name}.jpg")
    content = {
        "target_object": ["glove"],
        "bbox": [[10, 20, 30, 5]],
        "question": QUESTION,
        "options": OPTIONS,
        **changes,
    }
    (folder / category / f"{name}.json").write_text(json.dumps(content))


def question(folder: Path, **changes: Any) -> dict[str, Any]:
    photo(folder / "direct_attributes" / "sa_1.jpg")
    lettered = [f"({letter}) {text}" for letter, text in zip("ABCD", OPTIONS, strict=True)]
    return {
        "image": "direct_attributes/sa_1.jpg",
        "text": "\n".join([QUESTION, *lettered, "Answer with a letter."]),
        "category": "direct_attributes",
        "label": "B",
        "question_id": 0,
        **changes,
    }


def ask(folder: Path, *rows: Any) -> VStarBench:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "test_questions.jsonl").write_text("\n".join(lines) + "\n")
    return VStarBench(folder)


def test_folder_layout(tmp_path: Path) -> None:
    annotate(tmp_path, "direct_attributes", "sa_1")
    annotate(
        tmp_path,
        "relative_position",
        "sa_2",
        target_object=["dog", "car"],
        bbox=[[10, 20, 30, 5], [50, 10, 20, 60]],
        options=["left", "right"],
    )
    source = VStarBench(tmp_path)
    first, second = source[0], source[1]
    assert (first.id, first.kind) == ("vstar-direct_attributes/sa_1", "direct_attributes")
    assert first.images[0].size == (100, 80)
    # Given as x, y, width, height: 10 20 30 5 ends at 10 + 30, 20 + 5.
    assert first.ground_truth.target_box == (10, 20, 40, 25)
    assert second.ground_truth.target_boxes == ((10, 20, 40, 25), (50, 10, 70, 70))
    assert second.ground_truth.target_box == (10, 10, 70, 70)  # encloses both boxes
    assert second.ground_truth.target_objects == ("dog", "car")
    assert source.problems == []


def test_options_are_shuffled_by_the_id_alone(tmp_path: Path) -> None:
    for number in range(60):
        annotate(tmp_path, "direct_attributes", f"sa_{number:02}")
    source, again = VStarBench(tmp_path), VStarBench(tmp_path)
    samples = [source[index] for index in range(60)]
    assert samples == [again[index] for index in range(60)]
    for sample in samples:
        (label,) = sample.answers
        options = sample.ground_truth.options
        assert sorted(options) == sorted(OPTIONS)
        assert options["ABCD".index(label)] == "rubber"  # the right one is option 0 of the file
        assert f"({label}) rubber\n" in sample.question
    labels = Counter(sample.answers[0] for sample in samples)
    assert set(labels) == set("ABCD")
    assert max(labels.values()) < 30  # without shuffling, A has 60 of 60


def test_score(tmp_path: Path) -> None:
    source = ask(tmp_path, question(tmp_path))
    sample = source[0]
    assert [source.score(text, sample) for text in ("B", "The answer is B", "cotton")] == [1, 1, 1]
    assert [source.score(text, sample) for text in ("A", "rubber", "")] == [0, 0, 0]
    assert source.score("The answer is B", sample, compat="r1_vlm") == 0.0  # its capitals are "TB"
    assert source.score("B", sample, compat="r1_vlm") == 1.0


def test_hub_layout(tmp_path: Path) -> None:
    row = question(tmp_path)
    source = ask(tmp_path, row)
    sample = source[0]
    assert sample.question == row["text"]  # the text of the data set, unchanged
    assert sample.id == "vstar-0"
    assert sample.kind == "direct_attributes"
    assert sample.answers == ("B",)
    assert sample.ground_truth == QuestionTruth(options=tuple(OPTIONS))


def test_hub_layout_takes_boxes_from_beside_the_image(tmp_path: Path) -> None:
    annotate(tmp_path, "direct_attributes", "sa_1")
    sample = ask(tmp_path, question(tmp_path))[0]
    assert sample.ground_truth.target_box == (10, 20, 40, 25)
    assert sample.answers == ("B",)  # the label of the question file, not the annotation


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{broken", "not JSON"),
        ("[1]", "expected an object"),
        ("[" * 100_000, "not JSON"),
        ({"label": "E"}, "not among the options"),
        ({"label": None}, "no label"),
        ({"text": "no options here"}, "not among the options"),
        ({"image": "direct_attributes/gone.jpg"}, "there is no image"),
        ({"image": "../../secret.jpg"}, "leads out"),
        ({"category": ""}, "no category"),
        ({"question_id": 0}, "used before"),
    ],
)
def test_line_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    line = bad if isinstance(bad, str) else question(tmp_path, **{"question_id": 1, **bad})
    source = ask(tmp_path, question(tmp_path), line, question(tmp_path, question_id=2))
    assert [source[index].id for index in range(len(source))] == ["vstar-0", "vstar-2"]
    (listed,) = source.problems
    assert (listed.row, Path(listed.file).name) == (2, "test_questions.jsonl")
    assert problem in listed.problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"options": None}, "no list of options"),
        ({"options": ["one"]}, "expected 2 to 26 options, got 1"),
        ({"options": [1, 2]}, "no list of options"),
        ({"bbox": [[1, 2, 3]]}, "four numbers"),
        ({"bbox": "box"}, "four numbers"),
        ({"question": None}, "no question"),
    ],
)
def test_annotation_that_is_invalid_is_listed(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    annotate(tmp_path, "direct_attributes", "bad", **changes)
    annotate(tmp_path, "direct_attributes", "good")
    source = VStarBench(tmp_path)
    assert len(source) == 1
    assert problem in source.problems[0].problem
    assert source.problems[0].file.endswith("bad.json")


def test_broken_image_is_found_when_its_row_is_asked_for(tmp_path: Path) -> None:
    annotate(tmp_path, "direct_attributes", "sa_1")
    (tmp_path / "direct_attributes" / "sa_1.jpg").write_bytes(b"nothing")
    with pytest.raises(ImageError, match=r"sa_1\.jpg is not an image"):
        VStarBench(tmp_path)[0]


def test_folder_of_neither_layout(tmp_path: Path) -> None:
    (tmp_path / "direct_attribute").mkdir()
    with pytest.raises(DataError, match=r"Expected test_questions\.jsonl.*holds direct_attribute/"):
        VStarBench(tmp_path)
