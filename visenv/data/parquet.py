"""Reads parquet shards: small columns at once, and image cells when they are requested.

pyarrow runs in a child process with limits (`visenv.decoding`), because a file of a few kilobytes
can contain any number of rows, and pages that expand to gigabytes.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from visenv.child_process.host import ChildLimits
from visenv.data.rows import RowLocation
from visenv.decoding.child.parquet import BYTES_KEY
from visenv.decoding.decoder import DecoderError, DecoderProcess, Source
from visenv.errors import DataError

MOST_ROWS = 1_000_000
"""Maximum number of rows of a data set in parquet. All rows are kept in memory without their
images."""

MOST_ROW_BYTES = 32 * 2**20
"""Maximum number of bytes of a row without its images."""

MOST_CELL_BYTES = 200 * 2**20
"""Maximum number of bytes of an image cell."""

_MANY = 1_000_000_000

PYARROW = DecoderProcess(
    "pyarrow",
    "visenv.decoding.child.parquet:ParquetTarget",
    ChildLimits(call_s=120.0, memory_bytes=4 * 2**30, data_bytes=3 * 2**30, processor_s=60.0),
    extra="data",
)
"""The decoder of parquet files."""


class _Group(NamedTuple):
    """Locates a row group: its file, its number in it, its rows, and its first row."""

    file: Path
    number: int
    rows: int
    first: int
    first_in_file: int


class ParquetRow(NamedTuple):
    """Holds a row without its large columns.

    Attributes:
        number: The number of the row in all shards, from 0.
        place: The file and the row in the file, for error messages.
        fields: The values by column, JSON-like or bytes; empty if the row cannot be read.
        problem: Why it cannot be read, otherwise ``""``.
    """

    number: int
    place: RowLocation
    fields: Mapping[str, Any]
    problem: str = ""

    def read(self) -> Mapping[str, Any]:
        """Return the values.

        Raises:
            DataError: If the row cannot be read.
        """
        if self.problem:
            raise DataError(self.problem)
        return self.fields


class ParquetShards:
    """Provides the rows of several parquet files, in order, numbered from 0.

    Args:
        files: The shards.
        large: Columns that are only read by `cell` (images).

    Attributes:
        columns: The types of the columns that any shard has, as pyarrow writes them, by name.

    Raises:
        ConfigurationError: If pyarrow is not installed.
        DataError: If a shard is not parquet, exceeds a limit, or there are more than `MOST_ROWS`.
    """

    def __init__(self, files: Sequence[Path], large: Sequence[str] = ()) -> None:
        self._large = frozenset(large)
        self.columns: dict[str, str] = {}
        self._columns: dict[Path, list[str]] = {}
        self._groups: list[_Group] = []
        first = 0
        for file in files:
            facts, _ = _call("facts", file)
            self._columns[file] = facts["columns"]
            self.columns |= dict(zip(facts["columns"], facts["types"], strict=True))
            first_in_file = 0
            for number, count in enumerate(facts["groups"]):
                self._groups.append(_Group(file, number, count, first, first_in_file))
                first += count
                first_in_file += count
            if first > MOST_ROWS:
                raise DataError(
                    f"{file} has {first_in_file:,} rows, with the shards before it {first:,}; at "
                    f"most {MOST_ROWS:,} are read. Split the data set."
                )

    def rows(self) -> Iterator[ParquetRow]:
        """Yield every row without its large columns, with its location.

        A row that is too large is yielded with its problem. If a row group cannot be read, its
        first row that is missing is yielded with the problem, and its other rows are left out.
        """
        for group in self._groups:
            small = [name for name in self._columns[group.file] if name not in self._large]
            first = 0
            while first < group.rows:
                try:
                    rows = _rows(group, small, first, _MANY, MOST_ROW_BYTES)
                except DataError as error:
                    yield _row(group, first, {}, str(error))
                    break
                if rows is None:
                    problem = f"the row has more than {MOST_ROW_BYTES:,} bytes, which is the limit"
                    yield _row(group, first, {}, problem)
                    first += 1
                    continue
                for fields in rows:
                    yield _row(group, first, fields)
                    first += 1
                if not rows:
                    yield _row(group, first, {}, f"the row group ends before row {group.rows}")
                    break

    def cell(self, row: int, column: str) -> Any:
        """Return one cell of a large column.

        Raises:
            DataError: If the shard cannot be read or has no such column, or the cell has more than
                `MOST_CELL_BYTES`.
        """
        place = bisect_right(self._groups, row, key=lambda group: group.first) - 1
        group = self._groups[place]
        columns = self._columns[group.file]
        if column not in columns:
            raise DataError(f"there is no column {column!r}: {columns}")
        rows = _rows(group, [column], row - group.first, 1, MOST_CELL_BYTES)
        if not rows:
            problem = "no such row" if rows is not None else f"more than {MOST_CELL_BYTES:,} bytes"
            where = f"{group.file}, row {group.first_in_file + row - group.first + 1}"
            raise DataError(f"{where}: the column {column!r} has {problem}")
        return rows[0][column]


def _row(group: _Group, number: int, fields: Mapping[str, Any], problem: str = "") -> ParquetRow:
    place = RowLocation(str(group.file), group.first_in_file + number + 1)
    return ParquetRow(group.first + number, place, fields, problem)


def _rows(
    group: _Group, columns: Sequence[str], first: int, count: int, most: int
) -> list[dict[str, Any]] | None:
    """Return some rows of a group from the row `first`, or None if that row is too large."""
    request = {"group": group.number, "columns": columns, "first": first}
    result, arrays = _call("rows", group.file, **request, count=count, most=most)
    if "large" in result:
        return None
    blob = arrays["blob"]

    def read(value: dict[str, Any]) -> Any:
        if BYTES_KEY not in value:
            return value
        start, length = value[BYTES_KEY]
        return bytes(blob[start : start + length])

    text = str(arrays["rows"], "utf-8", "surrogatepass")
    found: list[dict[str, Any]] = json.loads(text, object_hook=read if len(blob) else None)
    return found


def _call(method: str, file: Path, **request: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Call a method of `visenv.decoding.child.parquet.ParquetTarget`."""
    try:
        result, arrays = PYARROW.call(method, Source.of_file(file), **request)
    except DecoderError as error:
        raise DataError(f"{file} {error}.") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains NUL
        raise DataError(f"{file} is not a parquet file that can be read: {error}") from error
    if "problem" in result:
        raise DataError(f"{file} {result['problem']}")
    return result, arrays
