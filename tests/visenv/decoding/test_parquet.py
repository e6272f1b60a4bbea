"""Tests Parquet files: rows in batches, bombs of rows and pages, and damaged files."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.child_process.host import ChildLimits
from visenv.data import parquet as rows_of_parquet
from visenv.data.open import open_data
from visenv.data.parquet import ParquetShards
from visenv.decoding.decoder import DecoderProcess
from visenv.errors import DataError

pytestmark = pytest.mark.component("pyarrow")
ATTACK = pytest.mark.attack("decoders: rows cannot end or stop the process")


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lower the limits of the decoder, so that bombs may be small."""
    limits = ChildLimits(call_s=120, memory_bytes=2**30, data_bytes=2**28, processor_s=20)
    decoder = DecoderProcess("pyarrow", "visenv.decoding.child.parquet:ParquetTarget", limits)
    monkeypatch.setattr(rows_of_parquet, "PYARROW", decoder)
    yield
    decoder.close()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB


def test_rows_and_cells_of_all_groups_and_shards_are_those_that_were_written(
    tmp_path: Path,
) -> None:
    def columns(first: int, count: int) -> dict[str, Any]:
        numbers = range(first, first + count)
        return {
            "id": list(numbers),
            "text": [
                f"text {number} é\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")
                for number in numbers
            ],
            "list": [[number, None] for number in numbers],
            "struct": [{"path": "a", "data": bytes([number % 256])} for number in numbers],
            "nothing": [None] * count,
            "image": [{"bytes": bytes([number % 256]) * 100, "path": None} for number in numbers],
        }

    one = write(tmp_path / "a.parquet", columns(0, 700), row_group_size=300)
    other = write(tmp_path / "b.parquet", columns(700, 5))
    shards = ParquetShards([one, other], ["image"])

    rows = list(shards.rows())

    assert {*shards.columns} == {"id", "text", "list", "struct", "nothing", "image"}
    assert [row.number for row in rows] == [row.read()["id"] for row in rows] == list(range(705))
    assert str(rows[699].place) == f"{one}:700"
    assert str(rows[700].place) == f"{other}:1"
    assert rows[301].read() == {
        "id": 301,
        "text": "text 301 é😀",
        "list": [301, None],
        "struct": {"path": "a", "data": bytes([301 - 256])},
        "nothing": None,
    }
    for number in (0, 704, 299, 300, 301, 5, 650):
        cell = shards.cell(number, "image")
        assert cell == {"bytes": bytes([number % 256]) * 100, "path": None}
    with pytest.raises(DataError, match="no column 'picture'"):
        shards.cell(0, "picture")


def test_values_that_json_lacks_are_texts(tmp_path: Path) -> None:
    from datetime import date
    from decimal import Decimal

    path = write(tmp_path / "a.parquet", {"day": [date(2026, 1, 2)], "price": [Decimal("1.50")]})
    (row,) = ParquetShards([path], ()).rows()
    assert row.read() == {"day": "2026-01-02", "price": "1.50"}


@ATTACK
def test_millions_of_rows_in_a_small_file_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "hr_bench_4k.parquet"
    table = pa.table({"question": pa.DictionaryArray.from_arrays(pa.array([0] * 10**6), ["?"])})
    with parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(3):
            writer.write_table(table)
    assert path.stat().st_size < 100_000
    before = peak()
    with pytest.raises(DataError, match=r"3,000,000 rows.* at most 1,000,000 are read"):
        open_data(f"hrbench:{tmp_path}")
    assert peak() - before < 100_000


@ATTACK
def test_repeated_long_text_does_not_fill_the_memory(tmp_path: Path, small_limits: None) -> None:
    """Check a text of 1 MB that a million rows share: 1 TB if they were read at once."""
    import pyarrow as pa

    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x" * 2**20])
    path = write(tmp_path / "a.parquet", {"text": long})
    before = peak()
    problems = [row.problem for row in ParquetShards([path], ()).rows()]
    assert len(problems) == 1
    assert "cannot be decoded by pyarrow within its limits" in problems[0]
    assert "256 MiB of memory" in problems[0]
    assert peak() - before < 300_000


@ATTACK
def test_page_that_expands_to_gigabytes_does_not_fill_the_memory(
    tmp_path: Path, small_limits: None
) -> None:
    path = write(
        tmp_path / "a.parquet",
        {"text": ["good"] * 3, "bytes": [bytes(2**29), b"", b""]},
        compression="zstd",
        use_dictionary=False,
    )
    assert path.stat().st_size < 100_000
    before = peak()
    (row,) = ParquetShards([path], ()).rows()
    with pytest.raises(DataError, match="within its limits"):
        row.read()
    assert peak() - before < 100_000
    # The other columns of the same file can be read.
    rows = ParquetShards([path], ["bytes"]).rows()
    assert [row.read() for row in rows] == [{"text": "good"}] * 3
    with pytest.raises(DataError, match=r"a\.parquet"):
        ParquetShards([path], ["bytes"]).cell(2, "bytes")


@ATTACK
def test_list_of_many_nulls_is_a_bad_row_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of_parquet, "MOST_ROW_BYTES", 100_000)
    path = write(tmp_path / "a.parquet", {"list": [[1], [None] * 50_000, [3]]})
    rows = list(ParquetShards([path], ()).rows())
    assert [row.fields for row in rows] == [{"list": [1]}, {}, {"list": [3]}]
    with pytest.raises(DataError, match="more than 100,000 bytes, which is the limit"):
        rows[1].read()
    assert str(rows[1].place).endswith("a.parquet:2")


@ATTACK
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_file_gives_rows_or_problems(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "a.parquet"
    write(path, {"id": list(range(40)), "text": ["a", "b"] * 20}, row_group_size=10)
    content = bytearray(path.read_bytes())
    edits = st.tuples(st.integers(0, len(content) - 1), st.binary(min_size=1, max_size=4))
    for place, new in data.draw(st.lists(edits, min_size=1, max_size=4)):
        content[place : place + len(new)] = new
    path.write_bytes(bytes(content))
    try:
        rows = list(ParquetShards([path], ()).rows())
    except DataError as error:
        assert "a.parquet" in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert all(row.problem or row.fields for row in rows)
