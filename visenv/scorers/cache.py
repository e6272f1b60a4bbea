"""Implements caches of verdicts: in memory for one process, and on disk for all processes.

The cache on disk is one SQLite file. diskcache is not used because its last release is of 2023, it
reads pickles by default, and it does not detect a damaged file.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from cachetools import LRUCache
from filelock import FileLock

from visenv.decoding.sqlite import close_all
from visenv.errors import ConfigurationError
from visenv.files import check_no_link, output_folder
from visenv.scorers.values import nbytes, normalized, pack, unpack

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_FILE = "verdicts.sqlite"
_BESIDE = ("-journal", "-wal", "-shm")  # SQLite writes these files beside it
_SECONDS_TO_WAIT = 30.0
_PRUNE_EVERY = 256
# The last one occurs if the file was deleted or renamed while it was open.
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_READONLY_DBMOVED")


class MemoryCache:
    """Holds recently used values; any thread may use it.

    Args:
        max_bytes: Maximum size of all values; a larger value is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._values: LRUCache[str, Any] = LRUCache(max_bytes, getsizeof=nbytes)
        self._lock = threading.Lock()

    def get(self, key: str) -> tuple[Any] | None:
        """Return a copy of the value in a tuple (None is a valid value), or None if missing."""
        with self._lock:
            if key not in self._values:
                return None
            value = self._values[key]
        return (normalized(value),)

    def put(self, key: str, value: Any) -> None:
        """Store a normalized value."""
        with self._lock:
            if nbytes(value) <= self._values.maxsize:
                self._values[key] = value


class DiskCache:
    """Stores values in one SQLite file, which threads and processes of one machine may share.

    A damaged file is renamed with a warning, and a new one is created. If the disk is full or
    read-only, values are not cached, but verdicts are still returned. SQLite's locks do not work on
    every network file system.

    Args:
        folder: The folder of the file, which is created if it does not exist.
        max_bytes: Maximum size of the file; beyond it, the oldest values are deleted.

    Raises:
        ConfigurationError: If the folder cannot be created, or one of its files is a link.
    """

    def __init__(self, folder: Path, max_bytes: int = 4 << 30) -> None:
        try:
            output_folder(folder)
        except OSError as error:
            raise ConfigurationError(
                f"The cache folder {folder} cannot be made: {error}"
            ) from error
        self.path = folder / _FILE
        for suffix in ("", *_BESIDE):
            check_no_link(folder / (_FILE + suffix))
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._open: list[sqlite3.Connection] = []  # at most one
        weakref.finalize(self, close_all, self._open)
        self._identity: tuple[int, int] | None = None
        self._writes = 0
        self._warned = False

    def get(self, key: str) -> tuple[Any] | None:
        """Return the value in a tuple (None is a valid value), or None if missing."""

        def read(connection: sqlite3.Connection) -> tuple[bytes] | None:
            found: tuple[bytes] | None
            found = connection.execute(
                "SELECT value FROM verdicts WHERE key = ?", (key,)
            ).fetchone()
            return found

        row = self._do(read)
        if row is None:
            return None
        try:
            return (unpack(row[0]),)
        except ValueError as error:
            _logger.warning(
                "%s: the entry %s is damaged and is made again: %s", self.path, key, error
            )
            return None

    def put(self, key: str, value: Any) -> None:
        """Store a normalized value."""
        packed = pack(value)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, packed))
            self._writes += 1
            if self._writes % _PRUNE_EVERY == 1:
                self._prune(connection)

        self._do(write)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            close_all(self._open)

    def _do(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of the action, or None if the file cannot be used.

        A damaged file is replaced, and the action is repeated with the new file.
        """
        with self._lock:
            try:
                try:
                    return action(self._connection())
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    self._set_aside(error)
                    return action(self._connection())
            except (sqlite3.Error, OSError) as error:
                if not self._warned:
                    _logger.warning("The cache %s cannot be used: %s", self.path, error)
                self._warned = True
                return None

    def _connection(self) -> sqlite3.Connection:
        if not self._open:
            # Each statement is a transaction (isolation_level=None). Losing the last verdicts in a
            # power failure does no harm, so no request waits for the disk (synchronous=OFF).
            connection = sqlite3.connect(
                self.path,
                timeout=_SECONDS_TO_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
            self._open.append(connection)
            self._identity = _identity(self.path)
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
            )
        return self._open[0]

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file, unless another process has done so, and drop the connection."""
        self.close()
        with FileLock(self.path.with_suffix(".lock"), timeout=_SECONDS_TO_WAIT):
            if _identity(self.path) == self._identity and self.path.exists():
                damaged = self.path.with_name(f"{self.path.stem}.damaged-{time.time_ns()}.sqlite")
                self.path.rename(damaged)
                # SQLite would apply a remaining journal to the new file.
                self.path.with_name(self.path.name + "-journal").unlink(missing_ok=True)
                _logger.warning(
                    "The cache %s is damaged (%s). It was renamed to %s, and a new one is begun.",
                    self.path,
                    error,
                    damaged.name,
                )

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Delete the oldest tenth until the pages in use are within the limit."""

        def number(question: str) -> int:
            with closing(connection.execute(question)) as answer:
                return int(answer.fetchone()[0])

        size = number("PRAGMA page_size")
        while (number("PRAGMA page_count") - number("PRAGMA freelist_count")) * size > (
            self._max_bytes
        ):
            tenth = number("SELECT count(*) FROM verdicts") // 10 + 1
            connection.execute(
                "DELETE FROM verdicts WHERE rowid IN (SELECT rowid FROM verdicts ORDER BY rowid "
                "LIMIT ?)",
                (tenth,),
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return values that distinguish a file from another with the same name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # A file that was truncated while it was open has no table.
    return getattr(error, "sqlite_errorname", "").startswith(_DAMAGED) or "no such table" in str(
        error
    )
