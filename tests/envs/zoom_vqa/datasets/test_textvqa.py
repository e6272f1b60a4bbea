"""Tests TextVQA in both layouts, and each kind of bad row."""

from __future__ import annotations

import json
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import visenv.types
from visenv.data.open import open_data
from visenv.envs.zoom_vqa.datasets.textvqa import TextVQA, TextVQATruth
from visenv.errors import ConfigurationError, DataError, ImageError, UnknownNameError

Row = dict[str, Any]


def photo(path: Path, size: tuple[int, int] = (40, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", size, (200, 30, 30)).save(path)


def bomb(path: Path, width: int = 60_000, height: int = 50_000) -> None:
    """Write a PNG of 67 bytes whose header declares 3 gigapixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pieces = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + pieces)


def row(number: int, image: str, **changes: Any) -> Row:
    answers = ["stop"] * 7 + ["stop sign", "go", "unanswerable"]
    made = {
        "question": f"what does sign {number} say?",
        "image_id": image,
        "image_classes": ["Traffic sign"],
        "flickr_original_url": "",
        "flickr_300k_url": "",
        "image_width": 40,
        "image_height": 30,
        "answers": answers,
        "question_tokens": ["what", "does"],
        "question_id": number,
        "set_name": "train",
    }
    return {**made, **changes}


def release(folder: Path, rows: list[Any], split: str = "train") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"dataset_type": split, "dataset_name": "textvqa", "data": rows}
    (folder / f"TextVQA_0.5.1_{split}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("images", ["train_images", "train_val_images/train_images"])
def test_official_release(tmp_path: Path, images: str) -> None:
    photo(tmp_path / images / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc"), row(2, "abc")]))
    assert len(source) == 2
    assert source.problems == []
    sample = source[1]
    assert sample.id == "textvqa-train-2"
    assert sample.question == "what does sign 2 say?"
    assert sample.answers[7:] == ("stop sign", "go", "unanswerable")
    assert sample.images[0].size == (40, 30)
    assert sample.kind == "other"
    assert sample.ground_truth == TextVQATruth(image_id="abc", image_classes=("Traffic sign",))


def test_val_images_lie_with_those_of_train(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc")], "val"), split="val")
    assert source[0].images[0].size == (40, 30)


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (["Yes."] * 10, "yes/no"),
        (["two"] * 10, "number"),
        (["3.5"], "number"),
        (["a", "b"], "other"),
    ],
)
def test_kind(tmp_path: Path, answers: list[str], kind: str) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    assert TextVQA(release(tmp_path, [row(1, "abc", answers=answers)]))[0].kind == kind


def test_score(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc")]))
    # "stop sign" is one of ten answers: official 0.3; in the public code, min(1, 1/3).
    assert source.score("Stop sign.", source[0]) == pytest.approx(0.3)
    assert source.score("Stop sign.", source[0], compat="r1_vlm") == pytest.approx(1 / 3)


def test_split_test_keeps_its_rows_and_reports_that_it_cannot_be_scored(tmp_path: Path) -> None:
    photo(tmp_path / "test_images" / "abc.jpg")
    unanswered = row(1, "abc")
    del unanswered["answers"]
    source = TextVQA(release(tmp_path, [unanswered], "test"), split="test")
    assert source[0].answers == ()
    assert source.problems == []
    with pytest.raises(DataError, match="evaluation server"):
        source.score("stop", source[0])


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (row(7, "abc", answers=[]), "at least one text, got []"),
        (
            {key: value for key, value in row(7, "abc").items() if key != "answers"},
            "text, got None",
        ),
        (row(7, "abc", answers=["a", 3]), "not text"),
        (row(7, "abc", question="  "), "no question"),
        (row(7, "abc", question_id=None), "no question_id"),
        (row(1, "abc"), "used before"),
        (row(7, "gone"), "there is no image"),
        (row(7, "../../etc/passwd"), "leads out"),
        (row(7, "/etc/passwd"), "leads out"),
        (row(7, "a\0b"), "leads out"),
        (row(7, ""), "no image under image_id"),
        ("a string", "expected an object, got str"),
        (None, "expected an object, got NoneType"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc"), bad, row(3, "abc")]))
    assert [source[index].id for index in range(len(source))] == [
        "textvqa-train-1",
        "textvqa-train-3",
    ]
    (listed,) = source.problems
    assert listed.file.endswith("TextVQA_0.5.1_train.json")
    assert listed.row == 2
    assert problem in listed.problem


def test_gigapixel_image_is_refused_from_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    bomb(tmp_path / "train_images" / "bomb.png")
    source = TextVQA(release(tmp_path, [row(1, "bomb"), row(2, "abc")]))

    def decode(*_: Any) -> None:
        pytest.fail("something was decoded")

    monkeypatch.setattr(PIL.Image.Image, "load", decode)
    for _ in range(2):
        with pytest.raises(ImageError, match=r"TextVQA_0\.5\.1_train\.json:1: .*bomb\.png"):
            source[0]
    assert [problem.row for problem in source.problems] == [1]  # listed once
    assert source[1].images[0].size == (40, 30)


def test_gigapixel_image_below_pillows_own_limit_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pillow itself refuses twice its limit; our limit must work without it.
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", None)
    (tmp_path / "train_images").mkdir()
    bomb(tmp_path / "train_images" / "bomb.png")
    source = TextVQA(release(tmp_path, [row(1, "bomb")]))
    with pytest.raises(ImageError, match="3,000,000,000 pixels"):
        source[0]
    assert visenv.types.MAX_PIXELS < 3_000_000_000


def test_broken_image_names_itself(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    (tmp_path / "train_images" / "torn.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    source = TextVQA(release(tmp_path, [row(1, "abc"), row(2, "torn")]))
    assert source.problems == []  # found when the row is read
    with pytest.raises(ImageError, match=r"torn\.jpg"):
        source[1]
    assert source.problems[0].row == 2


def test_rows_share_one_decoded_image(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc")]))
    assert source[0].images[0].pixels is source[0].images[0].pixels


def test_index_outside(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc")]))
    for index in (-1, 1):
        with pytest.raises(IndexError):
            source[index]
    assert [sample.id for sample in source] == ["textvqa-train-1"]


def test_pickles(tmp_path: Path) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    source = TextVQA(release(tmp_path, [row(1, "abc"), row(2, "gone")]))
    again = pickle.loads(pickle.dumps(source))
    assert again[0] == source[0]
    assert again.problems == source.problems


# ---------------------------------------------------------------------- structural faults


def test_missing_folder_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "textvqa").mkdir()
    with pytest.raises(DataError, match=r"Did you mean .*textvqa"):
        TextVQA(tmp_path / "textvqq")


def test_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'val'"):
        TextVQA(tmp_path, split="vall")


def test_folder_of_neither_layout_lists_its_content(tmp_path: Path) -> None:
    (tmp_path / "TextVQA_0.5.1_val.json").write_text("{}")
    expected = r"Expected TextVQA_0\.5\.1_train\.json.*holds TextVQA_0\.5\.1_val\.json"
    with pytest.raises(DataError, match=expected):
        TextVQA(tmp_path)


def test_missing_image_folder_lists_the_content(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Expected the images of split 'train'"):
        TextVQA(release(tmp_path, [row(1, "abc")]))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{broken", "line 1 column 2"),
        ("[]", "No row of"),
        ('{"data": 3}', "with a list under data"),
    ],
)
def test_broken_file(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "train_images").mkdir()
    (tmp_path / "TextVQA_0.5.1_train.json").write_text(content)
    with pytest.raises(DataError, match=problem):
        TextVQA(tmp_path)


def test_file_without_a_usable_row(tmp_path: Path) -> None:
    (tmp_path / "train_images").mkdir()
    with pytest.raises(DataError, match=r"No row .* The first problem: .*there is no image"):
        TextVQA(release(tmp_path, [row(1, "gone")]))


# ---------------------------------------------------------------------- the hub's parquet


def shard(path: Path, rows: list[Row], images: list[Any], group: int = 2) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    whole = [{**row, "image": image} for row, image in zip(rows, images, strict=True)]
    parquet.write_table(pa.Table.from_pylist(whole), path, row_group_size=group)


def encoded(tmp_path: Path, size: tuple[int, int]) -> Row:
    photo(tmp_path / "scratch.png", size)
    return {"bytes": (tmp_path / "scratch.png").read_bytes(), "path": "scratch.png"}


@pytest.mark.component("pyarrow")
def test_hub(tmp_path: Path) -> None:
    sizes = [(20 + number, 10) for number in range(5)]
    images = [encoded(tmp_path, size) for size in sizes]
    rows = [row(number, f"image{number}") for number in range(5)]
    shard(tmp_path / "data/validation-00000-of-00002.parquet", rows[:3], images[:3])
    shard(tmp_path / "data/validation-00001-of-00002.parquet", rows[3:], images[3:])
    source = TextVQA(tmp_path, split="val")
    assert [source[index].images[0].size for index in range(5)] == sizes
    assert [source[index].id for index in (0, 4)] == ["textvqa-val-0", "textvqa-val-4"]
    assert np.array_equal(source[4].images[0].pixels[0, 0], (200, 30, 30))


@pytest.mark.component("pyarrow")
def test_rows_of_the_hub_that_are_invalid_are_listed(tmp_path: Path) -> None:
    good = encoded(tmp_path, (20, 10))
    rows = [row(0, "a"), row(1, "b", answers=[]), row(2, "c"), row(3, "d")]
    nothing = {"bytes": None, "path": "lost.jpg"}
    junk = {"bytes": b"no image", "path": None}
    shard(tmp_path / "data/train-00000-of-00001.parquet", rows, [good, good, nothing, junk])
    source = TextVQA(tmp_path)
    assert len(source) == 3
    assert source[0].images[0].size == (20, 10)
    with pytest.raises(DataError, match=r"parquet:3: there is no image"):
        source[1]
    with pytest.raises(ImageError, match=r"parquet:4: "):
        source[2]
    assert source.problems[0].problem.startswith("answers must be a list")
    assert [problem.row for problem in source.problems] == [2, 3, 4]


@pytest.mark.component("pyarrow")
def test_broken_shard(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train-00000-of-00001.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"train-00000-of-00001\.parquet is not a parquet"):
        TextVQA(tmp_path)


# ---------------------------------------------------------------------- choice by name


def test_textvqa_is_opened_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    photo(tmp_path / "train_images" / "abc.jpg")
    release(tmp_path, [row(1, "abc"), row(2, "gone")], "val")
    source = open_data(f"textvqa:{tmp_path}?split=val")
    assert isinstance(source, TextVQA)
    assert source.split == "val"
    assert "1 rows cannot be used" in caplog.text
    assert open_data(f"textvqa:{tmp_path}?split=val") is source  # environments share one index


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("textvq:/data", UnknownNameError, "Did you mean 'textvqa'"),
        ("", UnknownNameError, "data set"),
        ("textvqa", ConfigurationError, "textvqa:<folder>"),
        ("textvqa:?split=val", ConfigurationError, "textvqa:<folder>"),
        ("textvqa:/data?spilt=val", UnknownNameError, "Did you mean 'split'"),
        ("textvqa:/data?split", ConfigurationError, "option=value"),
        ("vstar:/data?split=val", UnknownNameError, "option of the data set vstar"),
        ("textvqa:/data?split=dev", UnknownNameError, "split of TextVQA"),
        ("hrbench:/data?size=4", UnknownNameError, "Did you mean '4k'"),
    ],
)
def test_open_data_refuses_invalid_names(text: str, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        open_data(text)
