"""Writes the files of a report: episodes and searched texts in parts, loaded on demand.

A page that was opened from a file may not read other files, but it may run scripts. Each part is
therefore a script with one call, whose arguments are JSON in a string, so that no text can become
code. `bounded` limits the size of JSON, because policies and data sets may contain long texts, or
NaN.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any

from visenv.files import check_no_link, output_folder, write_text

LONGEST_TEXT = 20_000
"""Maximum number of characters of one text on the page; the page shows how many more there are."""

DEEPEST = 16
"""Maximum number of levels of nested data on the page."""

LARGEST, SMALLEST = 1e300, 1e-300
"""Limits of the size of a number on the page. The page computes with differences and quotients of
numbers, and a chart of larger ones would have no ends."""


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value with None for NaN and infinity, and with bounded texts and nesting.

    Numbers beyond `LARGEST` become None, and those below `SMALLEST` 0.
    """
    if depth > DEEPEST:
        return "…"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded_number(value)
    if isinstance(value, str):
        more = len(value) - LONGEST_TEXT
        return value if more <= 0 else f"{value[:LONGEST_TEXT]}… [{more} more characters]"
    if isinstance(value, dict):
        return {bounded(str(key)): bounded(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(each, depth + 1) for each in value]
    return value


def _bounded_number(value: float) -> float | None:
    if not abs(value) < LARGEST:  # also for NaN
        return None
    return 0 if abs(value) < SMALLEST else value


EPISODES_IN_PART = 32
TEXTS_IN_PART = 1000


class ReportWriter:
    """Writes the parts of a report, as a context manager.

    If the block ends without an error, the parts of the previous report are removed. If it raises,
    the new parts are removed, and the previous report remains valid.

    Args:
        folder: Folder for ``episodes-<token>-<number>.js`` and ``texts-<token>-<number>.js``.

    Attributes:
        token: Part of the file names, so that a page never reads the parts of another report.
        bytes_of_texts: Size of the searched texts in bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.token = secrets.token_hex(8)
        self.bytes_of_texts = 0
        self._episodes: list[Any] = []
        self._texts: list[str] = []
        self._counts = {"episodes": 0, "texts": 0}

    def __enter__(self) -> ReportWriter:
        """Return the store itself.

        Raises:
            ConfigurationError: If the folder is a link.
        """
        check_no_link(self._folder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the parts of other reports, or after an error the parts of this one."""
        for part in (*self._folder.glob("episodes-*.js"), *self._folder.glob("texts-*.js")):
            own = part.name.split("-")[1] == self.token
            if own == (error is not None):
                part.unlink()

    def add(self, record: dict[str, Any], text: str) -> None:
        """Add an episode in the format of the page, and its searchable text."""
        self._episodes.append(bounded(record))
        self._texts.append(text)
        if len(self._episodes) == EPISODES_IN_PART:
            self._flush("episodes", self._episodes)
        if len(self._texts) == TEXTS_IN_PART:
            self._flush("texts", self._texts)

    def close(self) -> None:
        """Write the parts that are not yet full."""
        for kind, rows in (("episodes", self._episodes), ("texts", self._texts)):
            if rows:
                self._flush(kind, rows)

    def _flush(self, kind: str, rows: list[Any]) -> None:
        number = self._counts[kind]
        packed = json.dumps(json.dumps(rows, ensure_ascii=True, allow_nan=False))
        path = output_folder(self._folder) / f"{kind}-{self.token}-{number}.js"
        write_text(path, f'receive("{kind}",{number},{packed})\n')
        if kind == "texts":
            self.bytes_of_texts += len(packed)
        self._counts[kind] += 1
        rows.clear()
