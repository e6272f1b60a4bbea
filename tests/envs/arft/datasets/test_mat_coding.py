"""Tests MAT-Coding: rows of the benchmark, steps of the training set, and unusable rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arft.coding.ground_truth import CodingTruth, Distortion
from visenv.envs.arft.datasets.mat_coding import MatCoding
from visenv.errors import ConfigurationError, DataError, ImageError


def photo(path: Path, side: int = 40) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (side, 30)).save(path)


def row(**changes: Any) -> dict[str, Any]:
    """Return a row in the format of the hub."""
    return {
        "id": 71,
        "question": "What is the code?",
        "answers": ["151002065029"],
        "ori_image_path": "rotation90+dark_0_ori.png",
        "processed_image_path": "rotation90+dark_0_proc.png",
        "type": ["rotation90", "dark"],
        "split": "hard",
        **changes,
    }


CROP = {
    "id": 119,
    "question": "Recognize the text within the [366, 723, 506, 851] of the image.",
    "ori_image_path": "crop_8_ori.png",
    "processed_image_path": "crop_8_proc.png",
    "type": ["crop"],
}


def benchmark(folder: Path, *rows: Any) -> MatCoding:
    for name in ("rotation90+dark_0_proc", "crop_8_proc"):
        photo(folder / "MAT-Coding-image" / f"{name}.png")
    for name in ("rotation90+dark_0_ori", "crop_8_ori"):
        photo(folder / "MAT-Coding-image" / f"{name}.png", side=60)
    (folder / "MAT-Coding.json").write_text(json.dumps(list(rows)))
    return MatCoding(folder)


def test_row_of_the_benchmark(tmp_path: Path) -> None:
    sample = benchmark(tmp_path, row())[0]
    assert sample.id == "mat-coding-71"
    assert (sample.question, sample.answers) == ("What is the code?", ("151002065029",))
    assert sample.kind == "rotation90+dark"
    assert sample.ground_truth == CodingTruth(
        problems=("rotation90", "dark"),
        # In the published image, white has level 51, and the rotation is opposite to the paper.
        distortions=(
            Distortion(name="rotation90", clockwise=False),
            Distortion(name="dark", gain=0.2),
        ),
        split="hard",
        steps=("problem", "code", "answer"),
        labels={"split": "hard", "problem": "rotation90+dark"},
    )
    assert sample.images[0].size == (40, 30)


def test_crop_has_the_original_image_and_the_box_of_its_question(tmp_path: Path) -> None:
    sample = benchmark(tmp_path, row(**CROP))[0]
    assert sample.ground_truth.box == (366, 723, 506, 851)
    assert sample.ground_truth.distortions == ()
    assert sample.images[0].size == (60, 30)


def test_clean_image_takes_no_code(tmp_path: Path) -> None:
    sample = benchmark(tmp_path, row(type=["none"], split="simple"))[0]
    assert sample.ground_truth.steps == ("problem", "answer")


def test_split_is_the_row_s_own(tmp_path: Path) -> None:
    sample = benchmark(tmp_path, row(type=["dark"], split="hard"))[0]
    assert sample.ground_truth.split == sample.ground_truth.labels["split"] == "hard"
    other = benchmark(tmp_path, row(type=["dark"], split=None))[0]
    assert other.ground_truth.split == other.ground_truth.labels["split"] == "simple"


def test_single_answer_may_be_text_and_line_feeds_may_be_written(tmp_path: Path) -> None:
    source = benchmark(tmp_path, row(answers="Home"), row(id=2, answers=["FOR\\nKING", "for king"]))
    first, second = source[0], source[1]
    assert first.answers == ("Home",)
    assert second.answers == ("FOR\\nKING", "for king", "FOR KING")


def test_mat_coding_scores_by_f1(tmp_path: Path) -> None:
    source = benchmark(tmp_path, row(answers=["dark green"]))
    assert source.score("very dark green", source[0]) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": "dark"}, "type is not a list"),
        ({"type": [1]}, "type is not a list"),
        ({"type": []}, "There is no problem"),
        ({"type": ["sepia"]}, "There is no problem called 'sepia'"),
        ({"type": ["none", "dark"]}, "must be alone"),
        ({"question": " "}, "no question"),
        ({"answers": []}, "no answers"),
        ({"answers": [3]}, "no answers"),
        ({"id": None}, "no id"),
        ({"id": 71}, "used before"),
        ({"processed_image_path": None}, "no processed_image_path"),
        ({"processed_image_path": "gone.png"}, "there is no image"),
        ({"processed_image_path": "../../etc/passwd"}, "there is no image"),
        ({"processed_image_path": "/"}, "no image"),
        ({**CROP, "question": "What is there?"}, "must contain a box"),
    ],
)
def test_row_that_cannot_be_used_is_listed_and_the_others_are_read(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    source = benchmark(tmp_path, row(), row(id=72) | changes, row(id=73))
    assert [sample.id for sample in (source[0], source[1])] == ["mat-coding-71", "mat-coding-73"]
    (problem,) = source.problems
    assert problem.row == 2
    assert says in problem.problem


def test_broken_image_names_its_row(tmp_path: Path) -> None:
    source = benchmark(tmp_path, row())
    (tmp_path / "MAT-Coding-image" / "rotation90+dark_0_proc.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"MAT-Coding\.json:1"):
        source[0]


def test_folder_of_the_hub_is_found_from_above(tmp_path: Path) -> None:
    benchmark(tmp_path / "MAT-Benchmark", row())
    assert len(MatCoding(tmp_path)) == 1


# ---------------------------------------------------------------------------- the training set


def step(kind: str, problem: str, solution: str, **changes: Any) -> dict[str, Any]:
    image = f"/somewhere/else/train_images/{kind}.png"
    return {"type": kind, "image_path": image, "problem": problem, "solution": solution, **changes}


def train(folder: Path, *rows: Any) -> MatCoding:
    photo(folder / "train_images" / "pre_problem.png")
    (folder / "rft_agent_code_1_2k.json").write_text(json.dumps(list(rows)))
    return MatCoding(folder)


def test_single_steps_are_joined_to_samples(tmp_path: Path) -> None:
    query = "<query> What is it? </query>"
    source = train(
        tmp_path,
        step("pre_problem", query, "<think>a</think><problem> {'dark', 'rotation90'} </problem>"),
        step("pre_code", query, "<think>b</think><code>```python\nx\n```</code>"),
        step("pre_answer", query, "<think>c</think><answer> a cat </answer>"),
        step("pre_problem", query, "<think>a</think><problem>{'none'}</problem>"),
        step("pre_answer", query, "<think>c</think><answer>a dog</answer>"),
    )
    first, second = source[0], source[1]
    assert (first.question, first.answers) == ("What is it?", ("a cat",))
    assert first.ground_truth.problems == ("dark", "rotation90")
    assert (second.answers, second.ground_truth.problems) == (("a dog",), ("none",))
    assert first.images[0].size == (40, 30)


def test_step_without_its_answer_is_listed(tmp_path: Path) -> None:
    source = train(
        tmp_path,
        step("pre_problem", "one", "<problem>{'dark'}</problem>"),
        step("pre_problem", "two", "<problem>{'dark'}</problem>"),
        step("pre_answer", "two", "<answer>b</answer>"),
        "nonsense",
    )
    assert len(source) == 1
    assert "no answers" in source.problems[0].problem


# ---------------------------------------------------------------------------- choice of the file


def test_file_must_be_named_if_there_are_several(tmp_path: Path) -> None:
    photo(tmp_path / "images" / "a.png")
    line = json.dumps(row(processed_image_path="a.png")) + "\n"
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").write_text(line)
        (tmp_path / f"{name}.journal.jsonl").write_text("{}\n")
    with pytest.raises(ConfigurationError, match=r"train\.jsonl"):
        MatCoding(tmp_path)
    assert len(MatCoding(tmp_path, file="test.jsonl")) == 1


def test_folder_without_the_file_lists_its_content(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"MAT-Coding\.json.*notes\.txt"):
        MatCoding(tmp_path)
