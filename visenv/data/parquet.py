"""Reads parquet shards: small columns at once, and image cells when they are requested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from visenv.data.rows import RowLocation
from visenv.errors import ConfigurationError, DataError


class _Group(NamedTuple):
    """Locates a row group: its file, its number in it, and its first row in total and in it."""

    file: Path
    number: int
    first: int
    first_in_file: int


class ParquetShards:
    """Provides the rows of several parquet files, in order, numbered from 0.

    Args:
        files: The shards.
        large: Columns that are only read by `cell` (images).

    Attributes:
        columns: The names of the columns that any shard has.

    Raises:
        ConfigurationError: If pyarrow is not installed.
        DataError: If a shard is not parquet.
    """

    def __init__(self, files: Sequence[Path], large: Sequence[str]) -> None:
        self._large = frozenset(large)
        self._groups: list[_Group] = []
        self.columns: set[str] = set()
        first = 0
        for file in files:
            with _open(file) as opened:
                self.columns.update(opened.schema_arrow.names)
                first_in_file = 0
                for number in range(opened.num_row_groups):
                    self._groups.append(_Group(file, number, first, first_in_file))
                    count = opened.metadata.row_group(number).num_rows
                    first += count
                    first_in_file += count

    def rows(self) -> Iterator[tuple[RowLocation, dict[str, Any]]]:
        """Yield every row without its large columns, with its location."""
        for group in self._groups:
            with _open(group.file) as opened:
                small = [name for name in opened.schema_arrow.names if name not in self._large]
                table = opened.read_row_group(group.number, columns=small)
            for offset, row in enumerate(table.to_pylist()):
                yield RowLocation(str(group.file), group.first_in_file + offset + 1), row

    def cell(self, row: int, column: str) -> Any:
        """Return one cell of a large column; reads the row group of the cell.

        Raises:
            DataError: If the shard cannot be read or has no such column.
        """
        place = bisect_right(self._groups, row, key=lambda group: group.first) - 1
        group = self._groups[place]
        with _open(group.file) as opened:
            if column not in opened.schema_arrow.names:
                raise DataError(f"there is no column {column!r}: {opened.schema_arrow.names}")
            table = opened.read_row_group(group.number, columns=[column])
        return table[column][row - group.first].as_py()


def _open(file: Path) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{file} needs the package 'pyarrow'. Install visenv with the extra that contains it: "
            "visenv[data]."
        ) from error
    try:
        return parquet.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{file} is not a parquet file that can be read: {error}") from error
