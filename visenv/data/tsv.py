"""Tab-separated files whose rows are many megabytes: indexed once, read a row at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from visenv.errors import DataError


class Record(NamedTuple):
    """Where a record lies: its first line, and its bytes in the file."""

    line: int
    offset: int
    length: int


class TsvFile:
    """A TSV file with a header, quoted as pandas and the csv module quote.

    One record is in memory at a time. A quoted field may hold tabs and line ends. A line with an
    odd number of quotes is a record of its own when it has all its tabs, so that one broken line
    does not swallow those after it.

    Args:
        path: The file, UTF-8.

    Raises:
        DataError: If it cannot be read or has no header.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                header = file.readline()
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error}") from error
        self.columns = [field.strip() for field in fields_of(header)]
        if len(self.columns) < 2:
            raise DataError(f"{path} has no header of tab-separated columns: {header[:80]!r}")

    def records(self) -> Iterator[tuple[Record, bytes]]:
        """Every record after the header, in order, with its bytes."""
        line = 1
        with self.path.open("rb") as file:
            offset = len(file.readline())
            while content := file.readline():
                lines = 1
                while self._goes_on(content) and (further := file.readline()):
                    content += further
                    lines += 1
                if content.strip():
                    yield Record(line + 1, offset, len(content)), content
                line += lines
                offset += len(content)

    def read(self, record: Record) -> bytes:
        """The bytes of one record."""
        with self.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.length)

    def row(self, content: bytes) -> dict[str, str]:
        """A record's fields by column.

        Raises:
            DataError: If the number of fields is not the header's.
        """
        fields = fields_of(content)
        if len(fields) != len(self.columns):
            raise DataError(f"{len(fields)} fields where the header has {len(self.columns)}")
        return dict(zip(self.columns, fields, strict=True))

    def _goes_on(self, content: bytes) -> bool:
        return content.count(b'"') % 2 == 1 and content.count(b"\t") < len(self.columns) - 1


def fields_of(record: bytes) -> list[str]:
    """The fields of a record, without their quotes; linear in its length."""
    pieces: list[list[bytes]] = []
    inside = False
    for piece in record.rstrip(b"\r\n").split(b"\t"):
        if inside:
            pieces[-1].append(piece)
        else:
            pieces.append([piece])
        inside ^= piece.count(b'"') % 2 == 1
    return [_unquoted(b"\t".join(each)) for each in pieces]


def _unquoted(field: bytes) -> str:
    if len(field) > 1 and field[:1] == field[-1:] == b'"':
        field = field[1:-1].replace(b'""', b'"')
    return field.decode("utf-8", errors="replace")
