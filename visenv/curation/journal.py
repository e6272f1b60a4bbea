"""Writes the journal of a curation step: the outcome of each row, on disk as soon as it is known.

The journal is a JSONL file that only grows. Its first line contains the step and the settings that
affect outcomes. Each further line is the outcome of one row. A killed run loses no written outcome:
an incomplete last line is removed, and rows with an outcome are not processed again. If a row has
two outcomes, the later one counts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import lock_descriptor

from visenv.curation.lines import InputRow, Row, anchored, relative, with_own_images
from visenv.decoding.json_text import WRONG_VALUES, read_json
from visenv.errors import ConfigurationError, DataError
from visenv.files import open_output

FORMAT = 1
"""Format number in the first line; files with another number are refused."""

_SYNC_SECONDS = 1.0
"""Seconds between syncs to disk: a power failure loses at most this much, a killed process
nothing."""

Status = Literal["kept", "dropped", "failed"]


class RowOutcome(NamedTuple):
    """Describes the outcome of one row.

    Attributes:
        status: ``"kept"``; ``"dropped"`` by the rule of the step; or ``"failed"``: the row could
            not be processed, and the next run tries it again.
        reason: Why it was dropped or failed: a short text, one of few, for statistics.
        rows: The output rows of a kept row.
        detail: Facts of the decision, JSON-like.
    """

    status: Status
    reason: str = ""
    rows: tuple[Row, ...] = ()
    detail: Mapping[str, Any] = {}


def kept(*rows: Row, **detail: Any) -> RowOutcome:
    """Return the outcome of a kept row, with its output rows."""
    return RowOutcome("kept", "", rows, detail)


def dropped(reason: str, **detail: Any) -> RowOutcome:
    """Return the outcome of a row that the rule of the step drops."""
    return RowOutcome("dropped", reason, (), detail)


def failed(reason: str, error: object, **detail: Any) -> RowOutcome:
    """Return the outcome of a row that could not be processed."""
    return RowOutcome("failed", reason, (), {"error": str(error), **detail})


class _Entry(NamedTuple):
    """Holds the place of an outcome in the file, and whether it applies to the current row."""

    digest: str
    failed: bool
    offset: int
    length: int


class CurationJournal:
    """Reads and extends one journal; only one process at a time can do this.

    Args:
        path: The file, which is created if it does not exist.
        step: Name of the step.
        settings: The settings that affect outcomes, JSON-like.

    Raises:
        ConfigurationError: If another step wrote the file, or with other settings, or another run
            is writing it.
        DataError: If the file is not a journal, or is damaged before its end.
    """

    def __init__(self, path: Path, step: str, settings: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open_output(path, "a+b")
        self._entries: dict[str, _Entry] = {}
        self._synced = time.monotonic()
        header = json.dumps({"journal": FORMAT, "step": step, "settings": dict(settings)}).encode()
        try:
            self._lock()
            self._load(header + b"\n")
        except BaseException:
            self._file.close()
            raise

    def known(self, line: InputRow) -> bool:
        """Return whether the current version of the row has an outcome, possibly a failure."""
        entry = self._entries.get(line.id)
        return entry is not None and entry.digest == line.digest

    def finished(self, line: InputRow) -> bool:
        """Return whether the current version of the row was kept or dropped."""
        return self.known(line) and not self._entries[line.id].failed

    def outcome(self, line: InputRow) -> RowOutcome:
        """Return the outcome of a row that is `known`."""
        entry = self._entries[line.id]
        return _outcome(self._read(entry), self.path.parent)

    def place(self, line: InputRow) -> int:
        """Return the place in the file of the outcome of a `known` row.

        Later outcomes have larger values.
        """
        return self._entries[line.id].offset

    def add(self, line: InputRow, outcome: RowOutcome, after: int = -1) -> None:
        """Write the outcome of a row, unless an equal one exists beyond the place `after`."""
        content = _content(line, outcome, self.path.parent)
        old = self._entries.get(line.id)
        if old is not None and old.offset > after and self._read(old) == content:
            return
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(content)
        self._file.flush()
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync()
        failed = outcome.status == "failed"
        self._entries[line.id] = _Entry(line.digest, failed, offset, len(content))

    def with_own_images(self, outcome: RowOutcome) -> RowOutcome:
        """Return an outcome whose images are below the folder of the journal.

        Raises:
            DataError: If an image cannot be read.
        """
        folder = self.path.parent
        return outcome._replace(rows=tuple([with_own_images(row, folder) for row in outcome.rows]))

    def close(self) -> None:
        """Sync the file to disk, and release its lock."""
        if not self._file.closed:
            self._sync()
            self._file.close()

    # ------------------------------------------------------------------ the file

    def _lock(self) -> None:
        """Lock the file while it is open; the system releases the lock if the process is killed."""
        if not lock_descriptor(self._file.fileno(), blocking=False):
            raise ConfigurationError(f"Another run writes to {self.path} now.")

    def _load(self, header: bytes) -> None:
        self._file.seek(0)
        first = self._file.readline()
        if not first.endswith(b"\n") and header.startswith(first):  # new, or killed at once
            self._file.truncate(0)
            self._file.write(header)
            self._file.flush()
            self._sync()
            return
        self._check_header(first, json.loads(header))
        offset = len(first)
        for content in self._file:
            if not content.endswith(b"\n"):  # killed during a write
                self._file.truncate(offset)
                return
            self._index(content, offset)
            offset += len(content)

    def _check_header(self, first: bytes, wanted: Row) -> None:
        try:
            found = read_json(first)
            number = found["journal"]
        except (DataError, TypeError, LookupError) as error:
            raise DataError(f"{self.path} is not a journal of this program.") from error
        if number != FORMAT:
            raise DataError(f"{self.path} has the format {number!r}; this version reads {FORMAT}.")
        if found != wanted:
            raise ConfigurationError(
                f"{self.path} was written with {_shown(found)}, not with {_shown(wanted)}. "
                "Name another file, or delete it."
            )

    def _index(self, content: bytes, offset: int) -> None:
        try:
            entry = read_json(content)
            failed = _outcome(content, self.path.parent).status == "failed"
            self._entries[entry["line"]] = _Entry(entry["digest"], failed, offset, len(content))
        except WRONG_VALUES as error:
            raise DataError(
                f"{self.path} is damaged at byte {offset}: {type(error).__name__}: {error}."
            ) from error

    def _read(self, entry: _Entry) -> bytes:
        self._file.seek(entry.offset)
        content: bytes = self._file.read(entry.length)
        return content

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def _content(line: InputRow, outcome: RowOutcome, folder: Path) -> bytes:
    rows = [relative(row, folder) for row in outcome.rows]
    entry = {"line": line.id, "digest": line.digest, **outcome._asdict(), "rows": rows}
    return json.dumps(entry).encode() + b"\n"


def _outcome(content: bytes, folder: Path) -> RowOutcome:
    entry = read_json(content)
    rows = tuple([anchored(row, folder) for row in entry["rows"]])
    if entry["status"] not in ("kept", "dropped", "failed"):
        raise DataError(f"status must be kept, dropped or failed, got {entry['status']!r}")
    if not isinstance(entry["reason"], str) or not isinstance(entry["detail"], dict):
        raise TypeError("the reason is no text, or the detail is no object")
    return RowOutcome(entry["status"], entry["reason"], rows, entry["detail"])


def _shown(header: Row) -> str:
    return f"{header.get('step')} {header.get('settings')}"
