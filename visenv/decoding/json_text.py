"""Parses JSON of other people, with limits of size and nesting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from visenv.decoding.files import MOST_FILE_BYTES, MOST_LINE_BYTES, read_regular
from visenv.errors import DataError

DEEPEST = 256
"""Maximum number of levels of nested lists and objects. The grammars accept 200 in a call of a
policy, which a saved episode contains. Functions that walk through a value call themselves up to
twice for each level, and Python allows about 1,000 calls."""


def read_json(content: bytes | str, most: int = MOST_LINE_BYTES) -> Any:
    """Return the value in a JSON text.

    Args:
        content: The text. Bytes are decoded as `json.loads` does, or as UTF-8 with halves of
            surrogate pairs.
        most: Maximum number of bytes or characters; see `visenv.decoding.files.read_lines`.

    Raises:
        DataError: If the text is not JSON, is longer, or is nested in more than `DEEPEST` levels.
    """
    if len(content) > most and len(content.rstrip()) > most:
        raise DataError(f"the JSON text has more than {most:,} bytes, which is the limit")
    try:
        value = json.loads(content)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise DataError(f"not JSON: {error}") from error
    # A text with few brackets cannot be deep; counting them is faster than walking.
    if _brackets(content) > DEEPEST and _is_deeper(value, DEEPEST):
        raise _too_deep()
    return value


def read_json_file(content: bytes | str) -> Any:
    """Return the value of a whole JSON file; see `read_json`."""
    return read_json(content, MOST_FILE_BYTES)


WRONG_VALUES = (*(DataError, ValueError, TypeError, LookupError, AttributeError, OverflowError),)
"""The errors of code that uses a JSON value of other people in which something is missing or has
another type."""


def read_json_at(path: Path) -> Any:
    """Return the value of the JSON file at a path; see `read_json_file`.

    Raises:
        DataError: If there is no such file, or it cannot be read; the message contains the path.
    """
    try:
        return read_json_file(read_regular(path))
    except (DataError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _brackets(content: bytes | str) -> int:
    """Return the number of opening brackets and braces."""
    if isinstance(content, str):
        return content.count("[") + content.count("{")
    return content.count(b"[") + content.count(b"{")


def _too_deep() -> DataError:
    return DataError(f"not JSON: nested in more than {DEEPEST} levels, which is the limit")


def _is_deeper(value: Any, most: int) -> bool:
    """Return whether lists and objects are nested in more than `most` levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    return bool(level)
