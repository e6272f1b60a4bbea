"""Tests a user's own rows: formats, columns, images, options, boxes and splits."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.visenv.data.row_files import (
    BLUE,
    RED,
    encoded,
    open_rows,
    photo,
    row,
    write_lines,
    write_table,
)
from visenv.data.cells import image_cells, right_letter
from visenv.data.row import ONE_IMAGE
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Image, QuestionTruth

FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


def color_of(image: Image) -> tuple[int, ...]:
    return tuple(int(value) for value in image.pixels[0, 0])


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize("suffix", FORMATS)
def test_formats_give_the_same_samples(tmp_path: Path, suffix: str) -> None:
    photo(tmp_path / "photos" / "0.png", RED)
    photo(tmp_path / "photos" / "1.png", BLUE)
    rows = [row(0, id="a", kind="color"), row(1, id="b", kind="color", answer="blue, dark")]
    source = open_rows(write_table(tmp_path / f"my{suffix}", rows))
    assert [sample.id for sample in source] == ["a", "b"]
    assert [sample.answers for sample in source] == [("red",), ("blue, dark",)]
    assert [sample.question for sample in source] == ["What is 0?", "What is 1?"]
    assert [sample.kind for sample in source] == ["color", "color"]
    assert [color_of(sample.images[0]) for sample in source] == [RED, BLUE]


IMAGES: dict[str, Any] = {
    "path": "photos/0.png",
    "base64": base64.b64encode(encoded(BLUE)).decode(),
    "base64 with line ends": base64.encodebytes(encoded(BLUE, (300, 200))).decode(),
    "data prefix": "data:image/png;base64," + base64.b64encode(encoded(BLUE)).decode(),
    "struct with path": {"bytes": None, "path": "photos/0.png"},
    "struct with base64": {"bytes": base64.b64encode(encoded(BLUE)).decode(), "path": "x.png"},
    "list": ["photos/0.png", base64.b64encode(encoded(RED)).decode()],
}


@pytest.mark.parametrize("name", IMAGES)
def test_images_of_json(tmp_path: Path, name: str) -> None:
    photo(tmp_path / "photos" / "0.png", BLUE)
    images = open_rows(write_lines(tmp_path / "my.jsonl", [row(image=IMAGES[name])]))[0].images
    assert [color_of(image) for image in images] == [BLUE, RED][: 2 if name == "list" else 1]


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize(
    "image",
    [
        encoded(BLUE),
        {"bytes": encoded(BLUE), "path": "a.png"},
        {"bytes": None, "path": "photos/0.png"},
        [encoded(BLUE)],
        [{"bytes": encoded(BLUE), "path": None}],
        base64.b64encode(encoded(BLUE)).decode(),
        "photos/0.png",
        ["photos/0.png"],
    ],
    ids=["bytes", "struct", "struct path", "list", "list of structs", "base64", "path", "paths"],
)
def test_images_of_parquet(tmp_path: Path, image: Any) -> None:
    photo(tmp_path / "photos" / "0.png", BLUE)
    source = open_rows(write_table(tmp_path / "my.parquet", [row(image=image)]))
    assert color_of(source[0].images[0]) == BLUE


def test_encoded_images_do_not_stay_in_memory(tmp_path: Path) -> None:
    text = base64.b64encode(np.random.default_rng(0).bytes(300_000)).decode()
    write_lines(tmp_path / "my.jsonl", [row(n, image="data:;base64," + text) for n in range(40)])
    import tracemalloc

    tracemalloc.start()
    source = open_rows(tmp_path / "my.jsonl")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(source) == 40
    assert held < len(text)  # less than one of the 40 images


def test_names_are_given_or_recognized_and_printed_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [{"Picture": "photos/0.png", "q": "What?", "a": "red", "problem": "not this"}]
    path = write_lines(tmp_path / "my.jsonl", rows)
    source = open_rows(path, "question=q&answer=a")
    assert source[0].question == "What?"
    again = open_rows(path, "question=q&answer=a")
    assert again is source
    assert [each.message for each in caplog.records] == [
        f"{path}: 1 row. Recognized: image=Picture. Given: question=q, answer=a."
    ]


@pytest.mark.parametrize(
    ("image", "question", "answer"),
    [
        ("image", "question", "answer"),
        ("images", "problem", "answers"),
        ("picture", "prompt", "solution"),
        ("file_name", "query", "label"),
    ],
)
def test_usual_names(tmp_path: Path, image: str, question: str, answer: str) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [{image: "photos/0.png", question: "What?", answer: "red"}]
    sample = open_rows(write_lines(tmp_path / "my.jsonl", rows))[0]
    assert (sample.question, sample.answers) == ("What?", ("red",))


def test_several_image_columns(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png", RED)
    photo(tmp_path / "photos" / "1.png", BLUE)
    rows = [row(left="photos/1.png", right="photos/0.png"), row(left="photos/1.png", right=None)]
    source = open_rows(write_lines(tmp_path / "my.jsonl", rows), "image=left,right")
    assert [[color_of(image) for image in each.images] for each in source] == [[BLUE, RED], [BLUE]]


@pytest.mark.parametrize(
    "columns",
    [
        ["image", "image_2"],
        ["image_1", "image_2", "image_3"],
        ["Image0", "Image1"],
        ["img-1", "img-2"],
        [f"image_{number}" for number in range(1, 12)],  # in the order of numbers, not of texts
    ],
)
def test_numbered_columns_are_all_images_of_a_row(tmp_path: Path, columns: list[str]) -> None:
    row: dict[str, Any] = {"question": "q", "answer": "a", "image_count": 2, "image_note": "x"}
    for number, name in reversed(list(enumerate(columns))):
        color = (20 * number, 10, 200)
        PIL.Image.new("RGB", (4, 4), color).save(tmp_path / f"{number}.png")
        row[name] = f"{number}.png"
    (tmp_path / "my.jsonl").write_text(json.dumps(row))
    (sample,) = open_rows(tmp_path / "my.jsonl")
    assert [color_of(each)[0] for each in sample.images] == [20 * n for n in range(len(columns))]


def test_empty_cells_of_numbered_columns_are_no_images(tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    row = {"question": "q", "answer": "a", "image_1": "a.png", "image_2": None}
    (tmp_path / "my.jsonl").write_text(json.dumps(row))
    (sample,) = open_rows(tmp_path / "my.jsonl")
    assert len(sample.images) == 1


def test_columns_of_images_must_be_named_if_there_are_two(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        photo(tmp_path / name)
    row = {"question": "q", "answer": "a", "image": "a.png", "images": ["a.png", "b.png"]}
    (tmp_path / "my.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match=r"several columns of images: image, images.*image=image"):
        open_rows(tmp_path / "my.jsonl")
    (sample,) = open_rows(f"{tmp_path / 'my.jsonl'}?image=images")
    assert len(sample.images) == 2
    # A column of paths names the same image again.
    (tmp_path / "path.jsonl").write_text(
        json.dumps({"question": "q", "answer": "a", "image": "a.png", "image_path": "a.png"})
    )
    (sample,) = open_rows(tmp_path / "path.jsonl")
    assert len(sample.images) == 1


def test_files_in_another_folder(tmp_path: Path) -> None:
    inside = photo(tmp_path / "elsewhere" / "photos" / "0.png")
    path = write_lines(tmp_path / "my.jsonl", [row(), row(image=str(inside))])
    source = open_rows(path, f"folder={tmp_path / 'elsewhere'}")
    assert [len(sample.images) for sample in source] == [1, 1]


# ----------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (4, ("4",)),
        (4.0, ("4",)),
        (2.5, ("2.5",)),
        (True, ("yes",)),
        (["stop", "stop sign", "stop"], ("stop", "stop sign")),
        (" red ", ("red",)),
    ],
)
def test_answers(tmp_path: Path, answer: Any, accepted: tuple[str, ...]) -> None:
    photo(tmp_path / "photos" / "0.png")
    source = open_rows(write_lines(tmp_path / "my.jsonl", [row(answer=answer)]))
    assert source[0].answers == accepted
    assert source.score(accepted[-1].upper(), source[0]) == 1.0
    assert source.score("something else", source[0]) == 0.0


@pytest.mark.parametrize(
    ("answer", "letter"), [("B", "B"), ("(B)", "B"), ("B.", "B"), ("cat", "B"), (1, "B"), (0, "A")]
)
def test_options(tmp_path: Path, answer: Any, letter: str) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(answer=answer, options=["dog", "cat", "cow"])]
    source = open_rows(write_lines(tmp_path / "my.jsonl", rows))
    sample = source[0]
    assert sample.answers == (letter,)
    assert "\n(A) dog\n(B) cat\n(C) cow\n" in sample.question
    assert sample.ground_truth == QuestionTruth(options=("dog", "cat", "cow"))
    assert source.score(f"({letter})", sample) == 1.0
    assert source.score("(C)", sample) == 0.0


def test_options_of_columns(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(A="dog", B="cat", C="", answer="B"), row(A="one", B="two", C="three", answer="C")]
    source = open_rows(write_table(tmp_path / "my.tsv", rows))
    assert [each.ground_truth.options for each in source] == [
        ("dog", "cat"),
        ("one", "two", "three"),
    ]


def test_indices_of_options_are_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    photo(tmp_path / "photos" / "0.png")
    path = write_lines(tmp_path / "my.jsonl", [row(answer=1, options=["dog", "cat"])])
    open_rows(path)
    assert f"{path}: answers that are whole numbers are indices of options, from 0." in caplog.text


@given(
    st.lists(st.text("abcXYZ 12", min_size=1, max_size=5), min_size=2, max_size=26, unique=True)
    .map(lambda texts: [text.strip() or "x" for text in texts])
    .filter(lambda texts: len({*texts}) == len(texts)),
    st.data(),
)
def test_text_of_an_option_selects_it(options: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(options) - 1))
    assert right_letter(options[place], options) == chr(ord("A") + place)


# ------------------------------------------------------------------------------------------- boxes


@pytest.mark.parametrize(
    ("options", "box"),
    [
        ("", [4, 6, 20, 24]),
        ("boxes=xywh", [4, 6, 16, 18]),
        ("scale=0-1", [0.1, 0.2, 0.5, 0.8]),
        ("scale=0-1000", [100, 200, 500, 800]),
        ("boxes=xywh&scale=0-1000", [100, 200, 400, 600]),
    ],
)
def test_boxes_are_converted_to_pixels(tmp_path: Path, options: str, box: list[float]) -> None:
    photo(tmp_path / "photos" / "0.png", size=(40, 30))
    source = open_rows(write_lines(tmp_path / "my.jsonl", [row(box=box)]), options)
    assert source[0].ground_truth.target_box == pytest.approx((4, 6, 20, 24))


def test_several_boxes_and_a_box_slightly_outside(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png", size=(100, 50))
    rows = [row(box=[[1, 2, 30, 40], [50, 5, 60, 20]]), row(box=[-1, 0, 104, 52])]
    source = open_rows(write_lines(tmp_path / "my.jsonl", rows))
    assert source[0].ground_truth.target_boxes == ((1, 2, 30, 40), (50, 5, 60, 20))
    assert source[0].ground_truth.target_box == (1, 2, 60, 40)
    assert source[1].ground_truth.target_box == (0, 0, 100, 50)


# ------------------------------------------------------------------------------------------ splits


def test_rows_without_a_split_are_held_out_by_the_hash_of_their_id(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    path = write_lines(tmp_path / "my.jsonl", [row(id=f"r{number}") for number in range(400)])
    parts = {
        name: {each.id for each in open_rows(path, f"split={name}")} for name in ("train", "test")
    }
    below = {
        f"r{number}"
        for number in range(400)
        if int.from_bytes(hashlib.sha256(f"r{number}".encode()).digest()[:8]) < 0.05 * 2**64
    }
    assert parts["test"] == below
    assert 8 <= len(below) <= 32  # 20 are expected
    assert parts["train"] == {f"r{number}" for number in range(400)} - below
    assert len(open_rows(path)) == 400
    half = open_rows(path, "split=test&holdout=0.5")
    assert below < {each.id for each in half}
    assert 160 <= len(half) <= 240


def test_small_set_has_a_held_out_row(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    path = write_lines(tmp_path / "my.jsonl", [row(id=number) for number in range(3)])
    assert len(open_rows(path, "split=test")) == 1
    assert len(open_rows(path, "split=train")) == 2


def test_splits_of_a_column_and_of_file_names(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(id=n, split=["train", "val", "other"][n % 3]) for n in range(9)]
    path = write_lines(tmp_path / "my.jsonl", rows)
    assert [each.id for each in open_rows(path, "split=validation")] == ["1", "4", "7"]
    assert [each.id for each in open_rows(path, "split=test")] == ["1", "4", "7"]
    assert [each.id for each in open_rows(path, "split=other")] == ["2", "5", "8"]
    with pytest.raises(UnknownNameError, match=r"split of these rows.*'trian'.*'train'"):
        open_rows(path, "split=trian")
    photo(tmp_path / "set" / "photos" / "0.png")
    write_lines(tmp_path / "set" / "train-00000-of-00001.jsonl", [row(id=1)])
    write_lines(tmp_path / "set" / "test-00000-of-00001.jsonl", [row(id=1), row(id=2)])
    assert [each.id for each in open_rows(tmp_path / "set", "split=train")] == ["train/1"]
    assert [each.id for each in open_rows(tmp_path / "set", "split=test")] == ["test/1", "test/2"]
    assert len(open_rows(tmp_path / "set")) == 3
    pattern = open_rows(tmp_path / "set" / "tr*.jsonl")
    assert [each.id for each in pattern] == ["train/1"]


def test_configurations_of_a_folder(tmp_path: Path) -> None:
    for name in ("easy", "hard"):
        photo(tmp_path / name / "photos" / "0.png")
        write_lines(tmp_path / name / "train.jsonl", [row(id=name)])
    with pytest.raises(ConfigurationError, match=r"config=NAME: easy, hard"):
        open_rows(tmp_path)
    with pytest.raises(UnknownNameError, match=r"'hrad'.*'hard'"):
        open_rows(tmp_path, "config=hrad")
    assert [each.id for each in open_rows(tmp_path, "config=hard")] == ["train/hard"]


@pytest.mark.component("huggingface_hub")
def test_files_that_a_readme_declares(tmp_path: Path) -> None:
    photo(tmp_path / "a" / "photos" / "0.png")
    write_lines(tmp_path / "a" / "one.jsonl", [row(id=1)])
    write_lines(tmp_path / "a" / "two.jsonl", [row(id=2)])
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: first\n  data_files:\n"
        "  - split: train\n    path: a/one.jsonl\n"
        "  - split: test\n    path: a/two.jsonl\n---\n# Data\n"
    )
    source = open_rows(tmp_path, "split=test&config=first")
    assert [each.id for each in source] == ["test/2"]
    assert len(open_rows(tmp_path)) == 2


# --------------------------------------------------------------------------------------- bad input


def only_problem(path: Path, options: str = "") -> str:
    """Open a file with a good row and a bad one, and return the problem of the bad one."""
    source = open_rows(path, options)
    (problem,) = source.problems
    assert len(source) == 1
    assert (problem.file, source.left_out) == (str(path), 1)
    return f"{problem.row}: {problem.problem}"


BAD_ROWS: dict[str, tuple[Any, str]] = {
    "broken line": ('{"image": ', "1: not JSON"),
    "no object": ("[1]", "1: expected an object, got list"),
    "NUL byte": ('{"question": "a\0b"}', "1: a NUL byte at byte 15"),
    "missing image": (row(image="photos/9.png"), "1: there is no file"),
    "image outside": (row(image="../0.png"), "leads out of the folder .* with the option 'folder'"),
    "absolute image": (row(image="/etc/hosts"), "leads out of the folder"),
    "address": (row(image="https://x.org/a.png"), "1: 'https://x.org/a.png' is an address"),
    "null image": (row(image=None), "1: no image under image"),
    "empty list of images": (row(image=[]), "1: no image under image"),
    "number as image": (row(image=3), "an image must be a path, bytes, Base64 text"),
    "nested struct": (row(image={"image": {"x": 1}}), 'an image must be {"bytes"'),
    "null question": (row(question=None), "1: no question: None"),
    "blank question": (row(question="  "), "1: no question: '  '"),
    "only a marker": (row(question="<image>"), "1: the question must have text beside"),
    "null answer": (row(answer=None), "1: no answer: None"),
    "empty answer": (row(answer=""), "1: no answer: ''"),
    "empty list of answers": (row(answer=[]), "answers must be a list of texts"),
    "object as answer": (row(answer={"a": 1}), "1: no answer: {'a': 1}"),
    "options as one text": (row(options="a, b"), "options must be a list of texts, got 'a, b'"),
    "one option": (row(options=["red"]), "options must be 2 to 26 different texts"),
    "equal options": (row(options=["red", "red"]), "options must be 2 to 26 different texts"),
    "answer not an option": (row(options=["a", "b"]), "'red' selects none of the options"),
    "index from 1": (row(options=["a", "b"], answer=2), "2 is no index of 2 options"),
    "three numbers": (row(box=[1, 2, 3]), "a box must be four numbers, got \\[1, 2, 3\\]"),
    "xywh as xyxy": (row(box=[20, 20, 5, 5]), "no area in the form xyxy; the option 'boxes'"),
    "shares as pixels": (row(box=[0.1, 0.2, 0.5, 0.6]), "set the option scale=0-1"),
    "text as box": (row(box="left"), "expected a list"),
    "duplicate id": (row(id="good"), "1: the id good was used before"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_row_that_cannot_be_used_is_reported_and_the_rest_continues(
    tmp_path: Path, name: str
) -> None:
    bad, message = BAD_ROWS[name]
    photo(tmp_path / "photos" / "0.png")
    good = row(id="good")
    is_duplicate = isinstance(bad, dict) and "id" in bad
    rows = [good, bad] if is_duplicate else [bad, good]
    found = only_problem(write_lines(tmp_path / "my.jsonl", rows))
    assert_matches(message.replace("1:", "2:") if is_duplicate else message, found)


def assert_matches(pattern: str, text: str) -> None:
    import re

    assert re.search(pattern, text), text


def test_rows_that_cannot_be_used_are_printed_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(id=n, answer="red" if n < 3 else None) for n in range(20)]
    path = write_lines(tmp_path / "my.jsonl", rows)
    open_rows(path)
    messages = [each.message for each in caplog.records]
    assert messages[0].startswith(f"{path}: 3 rows. Recognized: id=id, image=image")
    assert messages[1:11] == [f"{path}:{n}: no answer: None" for n in range(4, 14)]
    assert messages[11:] == [f"{path}: 17 rows cannot be used, 10 are listed."]


def test_if_no_row_can_be_used_the_error_shows_three_reasons_and_the_columns(
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "my.jsonl", [row(n, extra=1) for n in range(5)])
    with pytest.raises(DataError) as raised:
        open_rows(path)
    text = str(raised.value)
    assert "No row of" in text
    assert "columns are image, question, answer, extra" in text
    assert text.count("there is no file") == 3


FILES: dict[str, tuple[bytes | None, str]] = {
    "missing": (None, "There is no file"),
    "empty": (b"", "is empty"),
    "only a mark": (b"\xef\xbb\xbf", "is empty"),
    "gzip": (b"\x1f\x8b\x08\x00abc", "is compressed with gzip: unpack it"),
    "UTF-16": ("[]".encode("utf-16"), "is encoded in UTF-16: save it as UTF-8"),
    "UTF-16 without a mark": ("[1]".encode("utf-16-le"), "is binary or encoded in UTF-16"),
    "not a row": (b"12\n", "No row of"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str, suffix: str) -> None:
    content, message = FILES[name]
    path = tmp_path / f"my{suffix}"
    if content is not None:
        path.write_bytes(content)
    if (name, suffix) == ("not a row", ".csv"):
        message = "has no header of comma-separated columns"
    elif name == "not a row":
        message = "has no row that can be read. Row 1: expected an object, got int"
    with pytest.raises(DataError, match=message):
        open_rows(path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"image": "a.png", "question": "Café?"}'.encode("cp1252"), "not UTF-8: byte 0xe9"),
        (b'{\n "image": "a.png",\n "question": "q"\n}', "Row 1: not JSON"),
    ],
)
def test_file_without_a_readable_row_tells_its_first_problem(
    line: bytes, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "my.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DataError, match=rf"has no row that can be read.*{problem}"):
        open_rows(tmp_path / "my.jsonl")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv"])
def test_byte_order_mark_is_skipped(tmp_path: Path, suffix: str) -> None:
    photo(tmp_path / "photos" / "0.png")
    path = write_table(tmp_path / f"my{suffix}", [row()])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert open_rows(path)[0].question == "What is 0?"


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])
def test_row_in_another_encoding_is_reported(tmp_path: Path, suffix: str) -> None:
    photo(tmp_path / "photos" / "0.png")
    path = write_table(tmp_path / f"my{suffix}", [row(), row(question="Wie groß?")])
    path.write_bytes(path.read_bytes().replace("ß".encode(), b"\xdf").replace(b"\\u00df", b"\xdf"))
    assert "not UTF-8: byte 0xdf at byte" in only_problem(path)


def test_missing_column_names_the_columns_that_exist(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "my.jsonl", [{"image": "0.png", "q": "What?", "a": "red"}])
    with pytest.raises(DataError, match=r"recognized as the question .* are image, q, a\. Name it"):
        open_rows(path)
    with pytest.raises(UnknownNameError, match=r"no column.*'qq'.*'q'"):
        open_rows(path, "question=qq&answer=a")
    with pytest.raises(ConfigurationError, match="does not read the column 'video'"):
        open_rows(path, "question=q&answer=a&video=v")
    with pytest.raises(UnknownNameError, match=r"'quesiton'.*'question'"):
        open_rows(path, "quesiton=q")


def test_files_with_different_columns(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    write_table(tmp_path / "a.csv", [row()])
    write_table(tmp_path / "b.csv", [{"image": "photos/0.png", "q": "What?", "answer": "red"}])
    with pytest.raises(DataError, match=r"b\.csv lacks the column 'question'.* has image, q, ans"):
        open_rows(tmp_path)


def test_formats_are_not_mixed_in_a_folder(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", [row()])
    write_table(tmp_path / "b.jsonl", [row()])
    with pytest.raises(ConfigurationError, match=r"several formats \(\.csv, \.jsonl\)"):
        open_rows(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="Expected a file of rows"):
        open_rows(tmp_path / "empty")
    with pytest.raises(DataError, match=r"is no table; expected a file that ends with"):
        open_rows(photo(tmp_path / "x.png"))


@pytest.mark.parametrize("holdout", ["0", "1", "-0.1", "nan", "half"])
def test_holdout_is_a_share(tmp_path: Path, holdout: str) -> None:
    with pytest.raises(ConfigurationError, match="holdout must be above 0 and below 1"):
        open_rows(write_lines(tmp_path / "my.jsonl", [row()]), f"holdout={holdout}")


BROKEN: dict[str, tuple[bytes, str]] = {
    "no picture": (b"not a picture", "cannot be"),
    "0 bytes": (b"", "cannot be"),
    "cut": (encoded()[:60], "cannot be"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_image_is_reported_at_first_use(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    photo(tmp_path / "photos" / "0.png").write_bytes(BROKEN[name][0])
    path = write_lines(tmp_path / "my.jsonl", [row()])
    source = open_rows(path)
    assert not source.problems
    for _ in range(2):
        with pytest.raises(DataError, match=r"my\.jsonl:1: "):
            source[0]
    assert len(source.problems) == 1
    assert sum("my.jsonl:1: " in each.message for each in caplog.records) == 1


def test_image_of_100_megapixels_is_refused(tmp_path: Path) -> None:
    path = photo(tmp_path / "photos" / "0.png")
    PIL.Image.new("1", (10_000, 10_001)).save(path)
    source = open_rows(write_lines(tmp_path / "my.jsonl", [row()]))
    with pytest.raises(DataError, match="pixels"):
        source[0]


@pytest.mark.parametrize(
    ("box", "options", "is_known_at_opening"),
    [
        ([5, 5, 200, 20], "", False),
        ([100, 200, 500, 800], "", False),
        ([1, 2, 30, 40], "scale=0-1", True),
        ([100, 200, 500, 2000], "scale=0-1000", True),
    ],
)
def test_box_in_the_wrong_scale_names_the_option(
    tmp_path: Path, box: list[float], options: str, is_known_at_opening: bool
) -> None:
    photo(tmp_path / "photos" / "0.png", size=(100, 80))
    path = write_lines(tmp_path / "my.jsonl", [row(box=box)])
    with pytest.raises(DataError, match=r"outside the image.* the option 'scale' is pixels, 0-1"):
        _ = open_rows(path, options)[0]
    if not is_known_at_opening:
        assert len(open_rows(path, options)) == 1


def test_markers_of_images_are_removed_from_questions(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(question="<image>\nWhat is <image> this?")]
    assert open_rows(write_lines(tmp_path / "my.jsonl", rows))[0].question == "What is  this?"


@pytest.mark.component("pyarrow")
def test_nested_structs_and_dictionary_columns_of_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    photo(tmp_path / "photos" / "0.png")
    words = pa.array(["red", "blue"]).dictionary_encode()
    table = pa.table(
        {
            "image": ["photos/0.png", "photos/0.png"],
            "question": ["Which?", "What?"],
            "answer": words,
            "options": [["red", "green"], ["blue", "green"]],
            "meta": [{"a": {"b": 1}}, {"a": {"b": 2}}],
        }
    )
    parquet.write_table(table, tmp_path / "my.parquet")
    source = open_rows(tmp_path / "my.parquet")
    assert [each.answers for each in source] == [("A",), ("A",)]


def test_more_images_than_are_shown_are_refused(tmp_path: Path) -> None:
    photo(tmp_path / "photos" / "0.png")
    rows = [row(), row(1, image=["photos/0.png", "photos/0.png"])]
    path = write_lines(tmp_path / "my.jsonl", rows)
    source = open_rows(path, schema=ONE_IMAGE)
    assert [each.problem for each in source.problems] == [
        "the row has 2 images; this environment shows 1"
    ]
    assert len(open_rows(path)) == 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_cells_give_images_or_a_reason(value: Any) -> None:
    try:
        cells = image_cells(value)
    except DataError:
        return
    assert all(cell.path or cell.encoded for cell in cells)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_rows_are_used_or_reported(values: list[Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        photo(Path(folder, "photos", "0.png"))
        keys = ("image", "question", "answer", "options", "box", "id")
        rows = [
            row(id="good"),
            *({**row(), key: _plain(value)} for key, value in zip(keys, values, strict=False)),
        ]
        source = open_rows(write_lines(Path(folder, "my.jsonl"), [json.dumps(r) for r in rows]))
        assert len(source) + source.left_out == len(rows)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str, skipkeys=True).replace("NaN", "null"))
