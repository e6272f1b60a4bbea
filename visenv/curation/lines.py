"""Reads rows of JSONL files such that every line is accounted for, whatever its content is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from visenv.decoding.files import read_lines, read_regular
from visenv.decoding.json_text import read_json
from visenv.decoding.pictures import MOST_BYTES
from visenv.errors import DataError
from visenv.files import (
    check_no_link,
    file_inside,
    is_image_name,
    output_folder,
    replacing,
)

Row = dict[str, Any]
"""One row: a JSON object with an ``"id"``."""


class InputRow(NamedTuple):
    """Holds one row to process, or the reason why it cannot be read.

    Attributes:
        id: Unique in its file: the id of the row, or its line if it has no valid id.
        digest: Hash of the line, to detect changed rows.
        row: The row; empty if there is a problem.
        problem: Why the line cannot be read, otherwise ``""``.
    """

    id: str
    digest: str
    row: Row
    problem: str = ""


class InputRows(Protocol):
    """Holds rows that can be iterated several times, in the same order each time."""

    def __len__(self) -> int:
        """Return the number of lines, with those that cannot be read."""
        ...

    def __iter__(self) -> Iterator[InputRow]:
        """Iterate over the lines."""
        ...


PATH_KEYS = ("images", "evidence")
"""Keys of a row that contain lists of paths."""


class JsonLines:
    """Iterates over the rows of a JSONL file, with one row in memory at a time.

    Empty lines are skipped. A saved episode without an id gets one from its environment, group and
    member. Any other line that is not a JSON object, has no id (a non-empty string or an integer)
    or repeats an id is an `InputRow` with a problem, and so is a row with a path that is
    not below the folder of the file. Paths under `PATH_KEYS` are relative to that folder, and are
    returned as absolute paths.

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
        for number, content in enumerate(read_lines(self.path), start=1):
            if content.strip():
                yield number, content

    def _line(self, number: int, content: bytes, known: dict[str, int]) -> InputRow:
        digest = hashlib.sha256(content.strip()).hexdigest()[:16]
        try:
            row = _with_id(read_object(content))
            name = _id_of(row)
            if name in known:
                raise DataError(f"the id {name!r} is already used on line {known[name]}")
            return InputRow(name, digest, anchored(row, self.path.parent))
        except DataError as error:
            place = f"line {number}"
            while place in known:  # another row has this id
                place += "'"
            return InputRow(place, digest, {}, f"{self.path.name}:{number}: {error}")


def row_line(row: Row) -> InputRow:
    """Return an `InputRow` for a row that is not from a file."""
    content = json.dumps(row, sort_keys=True).encode()
    return InputRow(_id_of(row), hashlib.sha256(content).hexdigest()[:16], row)


def read_object(content: bytes | str) -> Row:
    """Return the JSON object in `content`.

    Raises:
        DataError: If the content is not a JSON object.
    """
    value = read_json(content)
    if not isinstance(value, dict):
        raise DataError(f"a row must be an object, got {type(value).__name__}")
    return value


def relative(row: Row, folder: Path) -> Row:
    """Return the row with the paths of its images relative to `folder`, for writing it there.

    A row can only be read again if its images are below `folder` (`with_own_images`).
    """
    return _with_paths(row, lambda path: os.path.relpath(path, folder))


def anchored(row: Row, folder: Path) -> Row:
    """Return a row read from `folder` with absolute paths of its images.

    The inverse of `relative`.

    Raises:
        DataError: If a name under `PATH_KEYS` is not that of a file below `folder`.
    """
    root = _absolute(folder)

    def below(name: str) -> str:
        if "\0" not in name and _is_below(root, str(root / name)):  # also an absolute path
            name = _absolute(root / name).relative_to(root).as_posix()
        return str(file_inside(root, name))

    return _with_paths(row, below)


def with_own_images(row: Row, folder: Path) -> Row:
    """Return the row with images below `folder`: others are copied to ``images/`` in it.

    A folder of rows then needs no other folder, and can be moved or sent.

    Args:
        row: A row with absolute paths of its images.
        folder: The folder to which the row is written.

    Raises:
        DataError: If an image cannot be read.
    """
    return _with_paths(
        row, lambda path: path if _is_below(folder, path) else str(copy_image(Path(path), folder))
    )


def copy_image(path: Path, folder: Path) -> Path:
    """Copy a file to ``images/`` in `folder`, once, and return the copy.

    The copy keeps the name of an image that visenv saved, which is the hash of its pixels. Another
    copy is named by the hash of the file.

    Raises:
        DataError: If the file cannot be read.
    """
    try:
        name, content = path.name, None
        if not is_image_name(name):
            content = read_regular(path, MOST_BYTES)
            name = hashlib.sha256(content).hexdigest() + path.suffix.lower()
        copy = output_folder(folder / "images") / name
        check_no_link(copy)
        if not copy.exists():
            with replacing(copy) as partial:
                partial.write_bytes(read_regular(path, MOST_BYTES) if content is None else content)
    except OSError as error:
        raise DataError(f"the image {path} cannot be read: {error}") from error
    return copy


def write_lines(path: Path, rows: Iterable[Row]) -> int:
    """Write a file of rows, which appears when it is complete; return the number of rows.

    Args:
        path: The file, in an existing folder.
        rows: The rows, with absolute paths of their images.
    """
    count = 0
    with replacing(path) as partial, partial.open("wb") as file:
        for row in rows:
            file.write(json.dumps(relative(row, path.parent)).encode() + b"\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return count


def _with_id(row: Row) -> Row:
    """Return a row with an id; a saved episode is identified by its place in the run.

    Rollouts, evaluations and training runs save episodes without ids.
    """
    if "id" in row or not {"env_id", "group", "member", "turns"} <= row.keys():
        return row
    place = f"{row['group']}-{row['member']}"
    env = f"{row['env_id']}/" if row["env_id"] else ""
    return {"id": f"{env}{place}", **row}


def _id_of(row: Row) -> str:
    name = row.get("id")
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    raise DataError("it has no id: a string or an integer under 'id'")


def _with_paths(row: Row, change: Callable[[str], str]) -> Row:
    """Return the row with changed paths."""
    changed: Row = {}
    for key in PATH_KEYS:
        paths = row.get(key)
        if isinstance(paths, list):
            if not all(isinstance(path, str) for path in paths):
                raise DataError(f"{key} must be a list of paths, got {paths!r:.80}")
            changed[key] = [change(path) for path in paths]
    return row | changed


def _is_below(folder: Path, path: str) -> bool:
    return _absolute(path).is_relative_to(_absolute(folder))


def _absolute(path: str | Path) -> Path:
    """Return an absolute path without "..", in which links remain."""
    return Path(os.path.abspath(path))  # noqa: PTH100
