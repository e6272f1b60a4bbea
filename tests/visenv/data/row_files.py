"""Writes files of rows with pictures, in every format, for tests."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import PIL.Image

from visenv.data.open import open_data
from visenv.data.row import QUESTIONS, RowSchema
from visenv.data.user_rows import Rows

RED, BLUE = (200, 10, 10), (10, 10, 200)


def encoded(color: tuple[int, int, int] = RED, size: tuple[int, int] = (40, 30)) -> bytes:
    """Return a PNG file of one color."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, color).save(buffer, "PNG")
    return buffer.getvalue()


def photo(path: Path, color: tuple[int, int, int] = RED, size: tuple[int, int] = (40, 30)) -> Path:
    """Write a PNG file of one color."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(color, size))
    return path


def row(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a row with the usual names, whose picture is ``photos/<number>.png``."""
    names = {"image": f"photos/{number}.png", "question": f"What is {number}?", "answer": "red"}
    return {**names, **changes}


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    """Write rows as JSONL; a text is written as it is."""
    lines = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows in the format of the suffix, with a standard library or pyarrow."""
    if path.suffix == ".jsonl":
        return write_lines(path, rows)
    if path.suffix == ".json":
        path.write_text(json.dumps(list(rows)))
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist([dict(each) for each in rows]), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            dialect = "excel" if path.suffix == ".csv" else "excel-tab"
            writer = csv.DictWriter(file, list(rows[0]), dialect=dialect)
            writer.writeheader()
            writer.writerows(rows)
    return path


def open_rows(path: Path | str, options: str = "", schema: RowSchema = QUESTIONS) -> Rows:
    """Open a file of rows by name."""
    source = open_data(f"rows:{path}{'?' * bool(options)}{options}", schema)
    assert isinstance(source, Rows)
    return source
