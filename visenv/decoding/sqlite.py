"""Opens SQLite files of other people to read them.

A view or a trigger in a file is a program: a view can count without an end, and the process that
reads it waits. Files of visenv contain plain tables only.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from visenv.decoding.files import regular_state
from visenv.errors import DataError

MOST_VALUE_BYTES = 2**28
"""Maximum number of bytes of a value, also of one that an expression in the file computes."""

_PLAIN = re.compile(r"CREATE (TABLE|(UNIQUE )?INDEX) ", re.IGNORECASE)


def open_database(path: Path) -> sqlite3.Connection:
    """Open a SQLite file of plain tables to read it; any thread may use the connection.

    Raises:
        DataError: If it is not a regular file, or contains a view, a trigger or a virtual table.
        OSError: If it does not exist.
        sqlite3.Error: If it is not a SQLite file.
    """
    regular_state(path)
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")
        for name, text in connection.execute("SELECT name, sql FROM sqlite_schema"):
            if text is not None and not _PLAIN.match(str(text)):
                raise DataError(f"{path} must contain tables only, but {name!r:.80} is none")
    except BaseException:
        connection.close()
        raise
    return connection


def close_all(connections: list[sqlite3.Connection]) -> None:
    """Close the connections and empty the list.

    Owners of connections register this function with `weakref.finalize`, so that no connection
    stays open after its owner is deleted. Python 3.13 warns of connections that are deleted open.
    """
    while connections:
        connections.pop().close()
