"""Reads tables of rows: JSONL, JSON, CSV, TSV and Parquet, with large cells on demand.

A table yields all rows once, in order. A cell of any size, such as an image as bytes or as Base64
text, can be read again later by the key of its row, so that no image stays in memory.
"""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from typing_extensions import override

from visenv.data.delimited import DelimitedFile
from visenv.data.json_rows import json_file
from visenv.data.parquet import ParquetShards
from visenv.data.rows import RowLocation
from visenv.decoding.files import MOST_LINE_BYTES, check_text_file, decode_utf8, open_regular
from visenv.decoding.json_text import read_json
from visenv.errors import DataError

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""Suffixes of the files that `open_table` reads."""

LIST_KEYS = ("data", "rows", "questions", "annotations", "samples")
"""Keys under which a JSON file may contain its list of rows."""

_ROWS_FOR_COLUMNS = 100


class DataRow(NamedTuple):
    """Holds one row of a table.

    Attributes:
        place: The file and the line or row in the file, for error messages.
        fields: The values by column; in Parquet without the large columns.
        key: Identifies the row for `DataTable.cells`.
        problem: Why the row cannot be read, otherwise ``""``.
    """

    place: RowLocation
    fields: Mapping[str, Any]
    key: Any = None
    problem: str = ""

    def read(self) -> Mapping[str, Any]:
        """Return the values.

        Raises:
            DataError: If the row cannot be read.
        """
        if self.problem:
            raise DataError(self.problem)
        return self.fields


class DataTable(ABC):
    """Defines a file of rows.

    Args:
        path: The file.

    Attributes:
        path: The file.
        columns: The names of its columns; in JSON the keys of the first 100 rows.
    """

    columns: Sequence[str]

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def rows(self, large: Sequence[str] = ()) -> Iterator[DataRow]:
        """Yield every row, in order; a row that cannot be read has a `problem`.

        Args:
            large: Columns whose values are read by `cells` only.
        """

    @abstractmethod
    def cells(self, key: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        """Return values of the row with this key.

        Raises:
            DataError: If the file has changed, or a value cannot be read.
        """

    def _place(self, number: int) -> RowLocation:
        return RowLocation(str(self.path), number)


def open_table(path: Path) -> DataTable:
    """Return the table in a file, by its suffix.

    Raises:
        DataError: If the file has another suffix, is empty, compressed or not UTF-8, or cannot be
            read.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{path} is no table; expected a file that ends with {', '.join(SUFFIXES)}."
        )
    if suffix == ".parquet":
        return ParquetTable(path)
    check_text_file(path)
    if suffix == ".json":
        return JsonTable(path)
    if suffix in (".csv", ".tsv"):
        return DelimitedTable(path, b"," if suffix == ".csv" else b"\t")
    return JsonLinesTable(path)


class JsonLinesTable(DataTable):
    """Reads a file with one JSON object in each line; the key of a row is its offset in bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        first = list(islice(self.rows(), _ROWS_FOR_COLUMNS))
        _check_readable(path, first)
        self.columns = list(dict.fromkeys(name for row in first for name in row.fields))

    @override
    def rows(self, large: Sequence[str] = ()) -> Iterator[DataRow]:
        offset = 0
        with open_regular(self.path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES + 1), b""), 1):
                key = offset
                offset += len(line) + _skip_line(file, line)
                if offset - key > MOST_LINE_BYTES:
                    limit = f"{MOST_LINE_BYTES:,} bytes, which is the limit"
                    yield DataRow(self._place(number), {}, key, f"the line has more than {limit}")
                elif line.strip():
                    yield self._row(number, key, line)

    @override
    def cells(self, key: int, columns: Sequence[str]) -> Mapping[str, Any]:
        with open_regular(self.path) as file:
            file.seek(key)
            row = self._row(0, key, file.readline(MOST_LINE_BYTES + 1)).read()
        return {name: row.get(name) for name in columns}

    def _row(self, number: int, key: int, line: bytes) -> DataRow:
        place = self._place(number)
        if not key:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            row = read_json(decode_utf8(line))
            if not isinstance(row, dict):
                raise DataError(f"expected an object, got {type(row).__name__}")
        except DataError as error:
            return DataRow(place, {}, key, str(error))
        return DataRow(place, row, key)


def _check_readable(path: Path, rows: Sequence[DataRow]) -> None:
    """Raise a `DataError` if none of the first rows can be read; it has the first problem."""
    if rows and all(row.problem for row in rows):
        raise DataError(
            f"{path} has no row that can be read. Row {rows[0].place.row}: {rows[0].problem}"
        )


def _skip_line(file: BinaryIO, line: bytes) -> int:
    """Skip the rest of a line that is too long, and return its number of bytes."""
    length = 0
    while len(line) > MOST_LINE_BYTES and not line.endswith(b"\n"):
        line = file.readline(MOST_LINE_BYTES + 1)
        length += len(line)
    return length


class JsonTable(DataTable):
    """Reads a JSON file whose content is a list of objects, which stays in memory.

    The list may be the whole content, or the value under one of `LIST_KEYS`. An object of objects
    is read as rows with the additional column ``id``.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows = _listed(json_file(path), path)
        _check_readable(path, list(islice(self.rows(), _ROWS_FOR_COLUMNS)))
        first = [row for row in self._rows[:_ROWS_FOR_COLUMNS] if isinstance(row, dict)]
        self.columns = list(dict.fromkeys(name for row in first for name in row))

    @override
    def rows(self, large: Sequence[str] = ()) -> Iterator[DataRow]:
        for key, row in enumerate(self._rows):
            if isinstance(row, dict):
                yield DataRow(self._place(key + 1), row, key)
            else:
                problem = f"expected an object, got {type(row).__name__}"
                yield DataRow(self._place(key + 1), {}, key, problem)

    @override
    def cells(self, key: int, columns: Sequence[str]) -> Mapping[str, Any]:
        return {name: self._rows[key].get(name) for name in columns}


def _listed(content: Any, path: Path) -> list[Any]:
    """Return the rows in the content of a JSON file."""
    if isinstance(content, dict):
        listed = next(
            (content[key] for key in LIST_KEYS if isinstance(content.get(key), list)), None
        )
        if listed is None and any(isinstance(row, dict) for row in content.values()):
            rows = content.items()
            listed = [{"id": key, **row} if isinstance(row, dict) else row for key, row in rows]
        content = listed
    if not isinstance(content, list):
        keys = ", ".join(LIST_KEYS)
        raise DataError(f"{path} must be a list of objects, or an object with a list under {keys}.")
    return content


class DelimitedTable(DataTable):
    """Reads a CSV or TSV file; every value is a text, ``""`` is None.

    The key of a row is its `visenv.data.delimited.Record`.
    """

    def __init__(self, path: Path, delimiter: bytes) -> None:
        super().__init__(path)
        self._file = DelimitedFile(path, delimiter)
        self.columns = self._file.columns

    @override
    def rows(self, large: Sequence[str] = ()) -> Iterator[DataRow]:
        for record, content in self._file.records():
            place = self._place(record.line)
            try:
                yield DataRow(place, self._fields(content), record)
            except DataError as error:
                yield DataRow(place, {}, record, str(error))

    @override
    def cells(self, key: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        row = self._fields(self._file.read(key))
        return {name: row.get(name) for name in columns}

    def _fields(self, content: bytes) -> dict[str, Any]:
        return {name: value or None for name, value in self._file.row(content).items()}


class ParquetTable(DataTable):
    """Reads a Parquet file; the key of a row is its number.

    Attributes:
        types: The types of the columns, as pyarrow writes them, by name.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._shards = ParquetShards([path])
        self.types = self._shards.columns
        self.columns = list(self.types)

    @override
    def rows(self, large: Sequence[str] = ()) -> Iterator[DataRow]:
        for row in ParquetShards([self.path], large).rows():
            yield DataRow(row.place, row.fields, row.number, row.problem)

    @override
    def cells(self, key: int, columns: Sequence[str]) -> Mapping[str, Any]:
        present = [name for name in columns if name in self.columns]
        return {name: self._shards.cell(key, name) for name in present}
