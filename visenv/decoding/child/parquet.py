"""Reads Parquet files with pyarrow, in a child process.

The metadata of a file may announce any number of rows, and a page of a few bytes may expand to
gigabytes. Rows are therefore read in small batches, and converted to JSON in the child, whose
memory is limited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .target import Arrays, ContentError, DecoderTarget, OpenSources

_MOST_OPEN = 4
_BATCH_ROWS = 256
_REPLY_ROWS = 1024

BYTES_KEY = "\0bytes"
"""Key of the object that stands for bytes in the JSON; its value is their offset and length in the
array ``blob``."""

Reply = tuple[dict[str, Any], dict[str, Any]]


class _Cursor:
    """Reads some columns of a row group from its start, in batches.

    `place` holds the source, the row group and the columns, and `next` the number of the next row.
    """

    def __init__(self, place: object, batches: Iterator[Any]) -> None:
        self.place, self.next = place, 0
        self._batches = batches
        self._batch: Any = None
        self._offset = 0
        self._rows: list[Any] | None = None

    def row(self) -> Any:
        """Return the next row as a dict, without advancing; None at the end of the group."""
        if not self._has_batch():
            return None
        if self._rows is None:
            self._rows = self._batch.to_pylist()
        return self._rows[self._offset]

    def advance(self, first: int) -> None:
        """Go to the row `first`, or to the end of the group."""
        while self.next < first and self._has_batch():
            step = min(first - self.next, self._batch.num_rows - self._offset)
            self._offset += step
            self.next += step

    def _has_batch(self) -> bool:
        while self._batch is None or self._offset == self._batch.num_rows:
            self._batch, self._rows, self._offset = next(self._batches, None), None, 0
            if self._batch is None:
                return False
        return True


class ParquetTarget(DecoderTarget):
    """Keeps the files that were read last open.

    Every request has ``key`` and ``path`` (`OpenSources.get`).
    """

    def start(self, options: Any) -> None:
        """Import pyarrow."""
        import pyarrow as pa
        from pyarrow import parquet

        self._arrow: Any = pa
        self._parquet: Any = parquet
        self._files = OpenSources(_MOST_OPEN, self._opened, lambda file: file.close())
        self._cursor: _Cursor | None = None

    def facts(self, request: Any, arrays: Arrays) -> Reply:
        """Return ``columns``, their ``types``, and ``groups``: the rows of each row group."""
        file = self._files.get(request, arrays)
        metadata = file.metadata
        groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        schema = file.schema_arrow
        types = [str(each) for each in schema.types]
        return {"columns": schema.names, "types": types, "groups": groups}, {}

    def rows(self, request: Any, arrays: Arrays) -> Reply:
        """Return rows as the arrays ``rows`` (a JSON list) and ``blob``, and their ``count``.

        The request has ``group``, ``columns``, ``first`` (the first row), ``count`` (the maximum
        number of rows) and ``most`` (the maximum number of bytes). The count is 0 at the end of the
        group. If the first row is larger, the result is ``{"large": true}``.
        """
        cursor = self._at(request, arrays)
        texts: list[bytes] = []
        blob = bytearray()
        size = 0
        while len(texts) < min(request["count"], _REPLY_ROWS):
            row = self._read(cursor)
            if row is None:
                break
            before = len(blob)
            text = _text(row, blob)
            size += len(text) + len(blob) - before
            if size > request["most"]:
                if not texts:
                    return {"large": True}, {}
                del blob[before:]
                break
            texts.append(text)
            cursor.advance(cursor.next + 1)
        rows = b"[" + b",".join(texts) + b"]"
        return {"count": len(texts)}, {"rows": memoryview(rows), "blob": memoryview(blob)}

    def _opened(self, path: str | memoryview) -> Any:
        try:
            return self._parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
        except MemoryError:
            raise
        except (OSError, self._arrow.ArrowException, ValueError, KeyError) as error:
            raise ContentError(f"is not a parquet file that can be read: {error}") from error

    def _at(self, request: Any, arrays: Arrays) -> _Cursor:
        """Return a cursor at the row ``first`` of the request."""
        file = self._files.get(request, arrays)
        first, rows = request["first"], min(request["count"], _BATCH_ROWS)
        place = (request["key"], request["group"], request["columns"], rows)
        cursor = self._cursor
        if cursor is None or cursor.place != place or cursor.next > first:
            batches = file.iter_batches(
                rows, row_groups=[request["group"]], columns=request["columns"], use_threads=False
            )
            cursor = self._cursor = _Cursor(place, batches)
        self._read(cursor, first)
        return cursor

    def _read(self, cursor: _Cursor, first: int = 0) -> Any:
        """Advance a cursor to the row `first`, and return its next row."""
        try:
            cursor.advance(first)
            return cursor.row()
        except MemoryError:
            raise
        except (OSError, self._arrow.ArrowException, ValueError) as error:
            self._cursor = None
            raise ContentError(f"cannot be read: {error}") from error


def _text(row: Any, blob: bytearray) -> bytes:
    """Return a row as JSON, and append its bytes to `blob`."""

    def plain(value: Any) -> Any:
        """Return a value that JSON does not have: bytes as their place, others as text."""
        if not isinstance(value, bytes):
            return str(value)
        blob.extend(value)
        return {BYTES_KEY: [len(blob) - len(value), len(value)]}

    return json.dumps(row, ensure_ascii=False, default=plain).encode("utf-8", "surrogatepass")
