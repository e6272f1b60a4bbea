"""Reads JSON in data files; a `DataError` describes any invalid content."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from visenv.data.rows import RowLocation
from visenv.decoding.files import read_lines, read_regular
from visenv.decoding.json_text import read_json, read_json_file
from visenv.errors import DataError


def json_lines(file: Path) -> Iterator[tuple[RowLocation, bytes]]:
    """Yield the non-blank lines of a JSONL file with their locations; see `read_lines`."""
    for number, line in enumerate(read_lines(file), start=1):
        if line.strip():
            yield RowLocation(str(file), number), line


def read_rows(file: Path, *keys: str) -> Iterator[tuple[RowLocation, Any]]:
    """Yield the rows of a JSONL file or of a JSON file's list (`json_list`), with their locations.

    Raises:
        DataError: If a JSON file contains no such list.
    """
    if file.suffix == ".jsonl":
        yield from json_lines(file)
        return
    for number, row in enumerate(json_list(file, *keys), start=1):
        yield RowLocation(str(file), number), row


def json_object(content: Any) -> dict[str, Any]:
    """Return the object in a JSON text; an object that is already parsed is returned unchanged.

    Raises:
        DataError: If the text is not JSON, exceeds the limits of `read_json`, or is no object.
    """
    if isinstance(content, bytes | str):
        content = read_json(content)
    if not isinstance(content, dict):
        raise DataError(f"expected an object, got {type(content).__name__}")
    return content


def json_file(file: Path) -> Any:
    """Return the value of a whole JSON file.

    Raises:
        DataError: If it cannot be read, or is not JSON; the message names the file.
    """
    try:
        return read_json_file(read_regular(file))
    except (DataError, OSError) as error:
        raise DataError(f"{file} cannot be read: {error}") from error


def json_list(file: Path, *keys: str) -> list[Any]:
    """Return the list in a JSON file: the whole content, or the list at one of `keys`.

    Raises:
        DataError: If there is no list.
    """
    content = json_file(file)
    if isinstance(content, dict):
        content = next((content[key] for key in keys if key in content), None)
    if not isinstance(content, list):
        where = " or ".join(["a list", *(f'an object with a list "{key}"' for key in keys)])
        raise DataError(f"{file} must be {where}.")
    return content


def written_list(value: Any) -> list[Any]:
    """Return a list, or parse one that is written as Python or JSON text, as in hub data sets.

    Only literals are parsed; no code is executed.

    Raises:
        DataError: If the value is not a list.
    """
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise DataError(f"expected a list, got {value!r:.200}") from error
    if not isinstance(value, list | tuple):
        raise DataError(f"expected a list, got {value!r:.200}")
    return list(value)
