"""Rows in JSONL files, read so that every line is accounted for, whatever stands in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from visenv.data.json_rows import json_value
from visenv.errors import DataError
from visenv.files import replacing

Row = dict[str, Any]
"""One row: a JSON object with an ``"id"``."""


class InputRow(NamedTuple):
    """Holds one row to work on, or what is wrong with it.

    Attributes:
        id: Unique in its file: the row's own, or where it stands when it has none that can be used.
        digest: Hash of what stands there, so that a changed row is noticed.
        row: The row; empty when there is a problem.
        problem: Why it cannot be read, ``""`` when it can.
    """

    id: str
    digest: str
    row: Row
    problem: str = ""


class InputRows(Protocol):
    """Holds rows that can be gone through more than once, in the same order each time."""

    def __len__(self) -> int:
        """Return the number of lines, those that cannot be read included."""
        ...

    def __iter__(self) -> Iterator[InputRow]:
        """Iterate over the lines."""
        ...


PATH_KEYS = ("images", "evidence")
"""The keys of a row that hold lists of paths."""


class JsonLines:
    """The rows of a JSONL file, one in memory at a time.

    Empty lines are passed over. A line that is no JSON object, has no id (a non-empty string or an
    integer) or repeats one is an `InputRow` with a problem. Paths under `PATH_KEYS` are relative to
    the file and come out absolute.

    Args:
        path: The file.

    Raises:
        DataError: If there is no such file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        if not self.path.is_file():
            raise DataError(f"There is no file of rows {str(self.path)!r}.")
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._contents())
        return self._length

    def __iter__(self) -> Iterator[InputRow]:
        known: dict[str, int] = {}
        for number, content in self._contents():
            line = self._line(number, content, known)
            known.setdefault(line.id, number)
            yield line

    def _contents(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            for number, content in enumerate(file, start=1):
                if content.strip():
                    yield number, content

    def _line(self, number: int, content: bytes, known: dict[str, int]) -> InputRow:
        digest = hashlib.sha256(content.strip()).hexdigest()[:16]
        try:
            row = read_object(content)
            name = _id_of(row)
            if name in known:
                raise DataError(f"the id {name!r} stands on line {known[name]} already")
            return InputRow(name, digest, anchored(row, self.path.parent))
        except DataError as error:
            place = f"line {number}"
            while place in known:  # a row that calls itself so
                place += "'"
            return InputRow(place, digest, {}, f"{self.path.name}:{number}: {error}")


def row_line(row: Row) -> InputRow:
    """Return a line for a row that is in no file."""
    content = json.dumps(row, sort_keys=True).encode()
    return InputRow(_id_of(row), hashlib.sha256(content).hexdigest()[:16], row)


def read_object(content: bytes | str) -> Row:
    """Return the JSON object in `content`.

    Raises:
        DataError: If it is none.
    """
    value = json_value(content)
    if not isinstance(value, dict):
        raise DataError(f"a row must be an object, got {type(value).__name__}")
    return value


def relative(row: Row, folder: Path) -> Row:
    """Return the row as it is written into `folder`: its images are named relative to that."""
    return row | {
        key: [os.path.relpath(path, folder) for path in row[key]] for key in _path_keys(row)
    }


def anchored(row: Row, folder: Path) -> Row:
    """Invert `relative`: the images of a row found in `folder` as absolute paths."""
    # Path.resolve would follow links, and raises where a name holds a NUL.
    return row | {
        key: [os.path.abspath(folder / path) for path in row[key]]  # noqa: PTH100
        for key in _path_keys(row)
    }


def write_lines(path: Path, rows: Iterable[Row]) -> int:
    """Write a file of rows, which appears under its name when it is complete; how many there were.

    Args:
        path: The file; its folder is there.
        rows: What to write, images as absolute paths.
    """
    count = 0
    with replacing(path) as partial, partial.open("wb") as file:
        for row in rows:
            file.write(json.dumps(relative(row, path.parent)).encode() + b"\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return count


def _id_of(row: Row) -> str:
    name = row.get("id")
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    raise DataError("it has no id: a string or an integer under 'id'")


def _path_keys(row: Row) -> list[str]:
    """Return the keys under which a row has a list of paths."""
    lists = {key: row.get(key) for key in PATH_KEYS}
    return [
        key
        for key, paths in lists.items()
        if isinstance(paths, list) and all(isinstance(each, str) for each in paths)
    ]
