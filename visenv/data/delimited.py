"""Reads CSV and TSV files with rows of many megabytes: indexes a file, then reads single rows."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from visenv.decoding.files import decode_utf8, open_regular
from visenv.errors import DataError

_MOST_LINES = 100
_MOST_BYTES = 256 * 2**20
"""Maximum number of bytes of a line; a longer line is read as several lines, which are no
records."""


class Record(NamedTuple):
    """Locates a record in the file: its first line, and its bytes."""

    line: int
    offset: int
    length: int


class DelimitedFile:
    """Reads a CSV or TSV file with a header, quoted as by pandas and the csv module.

    One record is in memory at a time. A quoted field may contain delimiters and line ends. If a
    quote is never closed, the record ends before the next line that is a complete record by itself,
    so that the rest of the file can still be read.

    Args:
        path: The file, UTF-8, with or without a byte-order mark.
        delimiter: The byte between two fields.

    Attributes:
        columns: The names in the header.

    Raises:
        DataError: If the file cannot be read or has no header.
    """

    def __init__(self, path: Path, delimiter: bytes = b"\t") -> None:
        self.path = path
        self._delimiter = delimiter
        try:
            with open_regular(path) as file:
                header = file.readline(_MOST_BYTES)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error}") from error
        fields = fields_of(header.removeprefix(codecs.BOM_UTF8), delimiter)
        self.columns = [field.strip() for field in fields]
        if len(self.columns) < 2:
            separated = "comma" if delimiter == b"," else "tab"
            raise DataError(
                f"{path} has no header of {separated}-separated columns: {header[:80]!r}"
            )

    def records(self) -> Iterator[tuple[Record, bytes]]:
        """Yield every record after the header, in order, with its bytes."""
        line = 1
        with open_regular(self.path) as file:
            offset = len(file.readline(_MOST_BYTES))
            while content := file.readline(_MOST_BYTES):
                content, lines = self._whole(content, file)
                if content.rstrip(b"\r\n"):
                    yield Record(line + 1, offset, len(content)), content
                line += lines
                offset += len(content)

    def read(self, record: Record) -> bytes:
        """Return the bytes of one record."""
        with open_regular(self.path) as file:
            file.seek(record.offset)
            return file.read(record.length)

    def row(self, content: bytes) -> dict[str, str]:
        """Return the fields of a record by column.

        Raises:
            DataError: If the number of fields differs from the header.
        """
        fields = fields_of(content, self._delimiter)
        if len(fields) != len(self.columns):
            raise DataError(f"{len(fields)} fields where the header has {len(self.columns)}")
        return dict(zip(self.columns, fields, strict=True))

    def _whole(self, content: bytes, file: BinaryIO) -> tuple[bytes, int]:
        """Return the record that begins with the line `content`, and its number of lines."""
        lines = 1
        while lines < _MOST_LINES and _split(content, self._delimiter)[1]:
            further = file.readline(_MOST_BYTES)
            if not further or self._is_record(further):
                file.seek(-len(further), os.SEEK_CUR)
                break
            content += further
            lines += 1
        return content, lines

    def _is_record(self, line: bytes) -> bool:
        fields = _split(line, self._delimiter)[0]
        return line.count(b'"') % 2 == 0 and len(fields) == len(self.columns)


def fields_of(record: bytes, delimiter: bytes = b"\t") -> list[str]:
    """Return the fields of a record without their quotes; the time is linear in its length.

    Raises:
        DataError: If a field is not UTF-8, or contains a NUL byte.
    """
    return [_unquoted(field) for field in _split(record, delimiter)[0]]


def _split(record: bytes, delimiter: bytes) -> tuple[list[bytes], bool]:
    """Return the fields of a record with their quotes, and whether the last one is still open."""
    fields: list[list[bytes]] = []
    quotes = 0
    for piece in record.rstrip(b"\r\n").split(delimiter):
        if quotes % 2:
            fields[-1].append(piece)
            quotes += piece.count(b'"')
        else:
            fields.append([piece])
            quotes = piece.count(b'"') if piece.startswith(b'"') else 0
    return [delimiter.join(pieces) for pieces in fields], quotes % 2 == 1


def _unquoted(field: bytes) -> str:
    if len(field) > 1 and field[:1] == field[-1:] == b'"':
        field = field[1:-1].replace(b'""', b'"')
    return decode_utf8(field)
