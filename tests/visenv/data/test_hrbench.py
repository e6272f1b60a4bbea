"""Tests the HR-Bench source on TSV and parquet files, which it reads row by row."""

from __future__ import annotations

import base64
import csv
import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.data.delimited import DelimitedFile, fields_of
from visenv.data.hrbench import HRBench, HRBenchTruth
from visenv.errors import DataError, ImageError

COLUMNS = [
    "index", "question", "image", "A", "B", "C", "D", "answer", "category", "cycle_category",
]  # fmt: skip


def picture(size: tuple[int, int], noise: bool = False) -> str:
    pixels = np.full((size[1], size[0], 3), 90, np.uint8)
    if noise:
        pixels = np.random.default_rng(0).integers(0, 256, pixels.shape, np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def row(number: int, **changes: str) -> dict[str, str]:
    made = {
        "index": str(number),
        "question": "What colour is the door?",
        "image": picture((30 + number, 20)),
        "A": "red", "B": "blue", "C": "green", "D": "white",
        "answer": "B",
        "category": "single",
        "cycle_category": "0",
    }  # fmt: skip
    return {**made, **changes}


def table(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_tsv(tmp_path: Path) -> None:
    table(tmp_path / "HRBench4K.tsv", [row(0), row(1, category="cross", cycle_category="3")])
    source = HRBench(tmp_path, "4k")
    assert len(source) == 2
    sample = source[1]
    assert (sample.id, sample.kind) == ("hrbench-4k-1", "cross")
    assert sample.images[0].size == (31, 20)
    assert sample.answers == ("B",)
    assert sample.ground_truth == HRBenchTruth(
        options=("red", "blue", "green", "white"), index="1", cycle_category="3"
    )
    assert "(B) blue\n" in sample.question
    assert source.problems == []


def test_score(tmp_path: Path) -> None:
    table(tmp_path / "HRBench4K.tsv", [row(0)])
    source = HRBench(tmp_path)
    sample = source[0]
    assert [source.score(text, sample) for text in ("B", "(B) blue", "It is blue.")] == [1, 1, 1]
    assert [source.score(text, sample) for text in ("A", "It is red.", "")] == [0, 0, 0]
    # The public code compares the whole text with the letter.
    assert source.score("B", sample, compat="r1_vlm") == 1.0
    assert source.score("<answer>B</answer>", sample, compat="r1_vlm") == 0.0
    assert source.score("The answer is B", sample, compat="r1_vlm") == 0.0


def test_fields_with_tabs_quotes_and_line_ends(tmp_path: Path) -> None:
    question = 'What does the "sign"\tsay?\nIn the middle.'
    table(tmp_path / "HRBench8K.tsv", [row(0, question=question), row(1)])
    source = HRBench(tmp_path, "8k")
    assert source[0].question.startswith(question)
    assert source[1].images[0].size == (31, 20)
    assert source.problems == []


def test_image_may_be_that_of_another_row(tmp_path: Path) -> None:
    rows = [row(0, image="1"), row(1), row(2, image="1"), row(3, image="9")]
    table(tmp_path / "HRBench4K.tsv", rows)
    source = HRBench(tmp_path)
    assert [source[index].images[0].size for index in range(3)] == [(31, 20)] * 3
    assert source.problems[0].row == 5  # line 1 is the header
    assert "no row has the index '9'" in source.problems[0].problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"answer": ""}, "no answer"),
        ({"answer": "E"}, "not among the 4 options"),
        ({"answer": "D", "D": ""}, "not among the 3 options"),
        ({"image": ""}, "no image"),
        ({"question": " "}, "no question"),
        ({"category": ""}, "no category"),
        ({"index": "0"}, "used before"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, changes: dict[str, str], problem: str
) -> None:
    table(tmp_path / "HRBench4K.tsv", [row(0), row(1, **changes), row(2)])
    source = HRBench(tmp_path)
    assert [source[index].id for index in (0, 1)] == ["hrbench-4k-0", "hrbench-4k-2"]
    assert len(source) == 2
    (listed,) = source.problems
    assert (listed.row, Path(listed.file).name) == (3, "HRBench4K.tsv")
    assert problem in listed.problem


@pytest.mark.parametrize("broken", ["too\tfew", 'one "quote', '9\t"open', "\t" * 40, "\0", '"'])
def test_broken_line_does_not_swallow_the_rest(tmp_path: Path, broken: str) -> None:
    path = table(tmp_path / "HRBench4K.tsv", [row(0), row(1), row(2)])
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:2], broken, *lines[2:]]))
    source = HRBench(tmp_path)
    kept = [source[index].id for index in range(len(source))]
    assert kept[0] == "hrbench-4k-0"
    assert kept[-1] == "hrbench-4k-2"
    assert source.problems[0].row == 3


def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    text = base64.b64encode(b"not an image at all, but long enough to be taken for one").decode()
    rows = [row(0), row(1, image="!" * 200), row(2, image=text)]
    table(tmp_path / "HRBench4K.tsv", rows)
    source = HRBench(tmp_path)
    assert source[0].images[0].size == (30, 20)
    with pytest.raises(DataError, match=r"HRBench4K\.tsv:3: .*is not Base64 text"):
        source[1]
    with pytest.raises(ImageError, match=r"HRBench4K\.tsv:4: .*is not an image"):
        source[2]
    assert [problem.row for problem in source.problems] == [3, 4]


@pytest.mark.slow
def test_opening_does_not_keep_the_images(tmp_path: Path) -> None:
    image = picture((400, 400), noise=True)
    rows = [row(index, image=image) for index in range(30)]
    size = table(tmp_path / "HRBench4K.tsv", rows).stat().st_size
    tracemalloc.start()
    source = HRBench(tmp_path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 15_000_000
    assert held < size / 50
    assert source[29].images[0].size == (400, 400)


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize("name", ["hr_bench_4k.parquet", "data/hrbench_4k-00000-of-00001.parquet"])
def test_parquet(tmp_path: Path, name: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "data").mkdir()
    rows: list[dict[str, Any]] = [row(0), row(1, answer="?"), row(2)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / name, row_group_size=2)
    source = HRBench(tmp_path)
    assert [source[index].images[0].size for index in range(2)] == [(30, 20), (32, 20)]
    assert [problem.row for problem in source.problems] == [2]


@pytest.mark.component("pyarrow")
def test_parquet_with_encoded_images(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    made: dict[str, Any] = row(0)
    made["image"] = {"bytes": base64.b64decode(made["image"]), "path": None}
    parquet.write_table(pa.Table.from_pylist([made]), tmp_path / "hr_bench_8k.parquet")
    assert HRBench(tmp_path, "8k")[0].images[0].size == (30, 20)


def test_missing_file_of_a_size_lists_the_files(tmp_path: Path) -> None:
    table(tmp_path / "HRBench4K.tsv", [row(0)])
    with pytest.raises(DataError, match=r"Expected hr_bench_8k.*holds HRBench4K\.tsv"):
        HRBench(tmp_path, "8k")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "HRBench4K.tsv").write_text("index\tquestion\timage\n")
    with pytest.raises(DataError, match="has no column A, B, C, D, answer, category"):
        HRBench(tmp_path)


def test_file_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "HRBench4K.tsv").write_bytes(b"\n")
    with pytest.raises(DataError, match="no header"):
        HRBench(tmp_path)


def field(without: str) -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8", exclude_characters=f"\r\0{without}"), max_size=12)


# No field has both tabs and line ends: a line of such a field could look like a whole record.
ROWS = st.lists(st.lists(field("\t") | field("\n"), min_size=3, max_size=3), max_size=6)


@given(ROWS)
def test_tsv_of_the_csv_module_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter="\t", lineterminator="\n").writerows([["a", "b", "c"], *rows])
    path = tmp_path_factory.getbasetemp() / "written.tsv"
    path.write_bytes(buffer.getvalue().encode())
    tsv = DelimitedFile(path)
    records = list(tsv.records())
    assert [list(tsv.row(content).values()) for _, content in records] == rows
    assert [tsv.read(record) for record, _ in records] == [content for _, content in records]


@given(st.binary())
def test_bytes_of_any_kind_have_fields_or_a_reason(record: bytes) -> None:
    readable = True
    try:
        record.decode("utf-8")
    except UnicodeDecodeError:
        readable = False
    if readable and b"\0" not in record:
        assert all(isinstance(field, str) for field in fields_of(record))
    else:
        with pytest.raises(DataError, match=r"not UTF-8|a NUL byte"):
            fields_of(record)
