"""Search by words: BM25 in one SQLite file, nothing to install.

SQLite's FTS5 reads the corpus: it cuts texts into words, takes their stems, and tells which words
stand where. Its own ranking looks up the length of each passage that holds any word asked for, at a
microsecond each, so that one "the" costs 100 ms in 100,000 passages. Here the places of a word are
kept as an array, and a query adds arrays up: some nanoseconds a passage, with the same BM25.

The index knows how many passages hold each word. A query is cut to its rarest words, as many as fit
a budget of passages to look at, so that common words cannot make it slow in a corpus of any size.
The rarest word always stays.

Measured facts and alternatives: `docs/search.md`.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.files import replacing
from visenv.search.passage import Passage, cleaned

FILE = "words.sqlite"
FORMAT = 2
BUDGET = 100_000
"""Passages that the words of one query may stand in, added up: about 3 ms."""

_MOST_WORDS = 32
_TITLE_WEIGHT = 2
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b, as SQLite and Lucene have them."""
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_NUMBERS, _COUNTS = "<u4", "u1"
_MOST_COUNTED = 255

Scores = npt.NDArray[np.float32]


def build(folder: Path, passages: Iterable[Passage]) -> int:
    """Write the index of `passages` into `folder`, whole or not at all; return how many there are.

    Raises:
        DataError: If there are none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE) as partial:
        partial.unlink(missing_ok=True)
        connection = sqlite3.connect(partial)
        try:
            count = _fill(connection, passages)
        finally:
            connection.close()
        if not count:
            raise DataError("There is no passage to index.")
    return count


def _fill(connection: sqlite3.Connection, passages: Iterable[Passage]) -> int:
    connection.executescript(
        f"""
        PRAGMA journal_mode = OFF;
        PRAGMA synchronous = OFF;
        CREATE TABLE passages (id INTEGER PRIMARY KEY, title TEXT, text TEXT, url TEXT);
        CREATE TABLE places (word TEXT PRIMARY KEY, passages INTEGER, numbers BLOB, counts BLOB);
        CREATE TABLE facts (format INTEGER, passages INTEGER, lengths BLOB);
        CREATE VIRTUAL TABLE temp.words USING fts5 (
            title, text, content = '', tokenize = "{_TOKENIZER}"
        );
        CREATE VIRTUAL TABLE temp.instances USING fts5vocab (temp, words, 'instance');
        """
    )
    with connection:
        connection.executemany(
            "INSERT INTO passages (title, text, url) VALUES (?, ?, ?)",
            (tuple(_storable(field) for field in passage) for passage in passages),
        )
        connection.execute(
            "INSERT INTO temp.words (rowid, title, text) SELECT id, title, text FROM passages"
        )
        (count,) = connection.execute("SELECT count(*) FROM passages").fetchone()
        lengths = [0] * count
        places = _places(connection, lengths)
        connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", places)
        facts = (FORMAT, count, struct.pack(f"<{count}I", *lengths))
        connection.execute("INSERT INTO facts VALUES (?, ?, ?)", facts)
    return int(count)


def _places(
    connection: sqlite3.Connection, lengths: list[int]
) -> Iterator[tuple[str, int, bytes, bytes]]:
    """Each word, how many passages hold it, their numbers from 0, and how often; a title twice.

    Adds up how many words each passage has in `lengths`.
    """
    weights = {"title": _TITLE_WEIGHT, "text": 1}
    rows = connection.execute("SELECT term, doc - 1, col FROM temp.instances")
    for word, places in groupby(rows, itemgetter(0)):
        counts: dict[int, int] = {}
        for _, number, column in places:
            counts[number] = counts.get(number, 0) + weights[column]
            lengths[number] += 1
        held = len(counts)
        often = bytes([min(count, _MOST_COUNTED) for count in counts.values()])
        yield word, held, struct.pack(f"<{held}I", *counts), often


class WordSearch:
    """Searches an index that `build` wrote.

    Args:
        folder: Of the index.
        budget: Passages that the words of one query may stand in, added up; more of them makes a
            query of common words better, and slower.

    Raises:
        DataError: If the folder holds no whole index.
        ConfigurationError: If `budget` is below 1.
    """

    def __init__(self, folder: str | Path, budget: int = BUDGET) -> None:
        if budget < 1:
            raise ConfigurationError(f"budget must be at least 1 passage, got {budget}.")
        self.folder = Path(folder).expanduser().resolve()
        self.budget = budget
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        try:
            self.passages, self._damping = self._read_facts(self._connection())
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise DataError(f"{self.folder / FILE} is no index that can be read: {error}") from None
        self._words = _Words()
        self.name = f"words:{self.passages}:{budget}"

    def _read_facts(self, connection: sqlite3.Connection) -> tuple[int, Scores]:
        """How many passages there are, and BM25's ``k1 * (1 - b + b * length / mean)`` of each."""
        number, count = connection.execute("SELECT format, passages FROM facts").fetchone()
        if number != FORMAT:
            raise DataError(f"{self.folder / FILE} has format {number}; this reads {FORMAT}.")
        (blob,) = connection.execute("SELECT lengths FROM facts").fetchone()
        lengths = np.frombuffer(blob, _NUMBERS)
        if len(lengths) != count:
            raise ValueError(f"{len(lengths)} lengths of {count} passages")
        relative = lengths / max(lengths.mean(), 1)
        damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * relative)
        return count, damping.astype(np.float32)

    def search(self, query: str, count: int) -> list[Passage]:
        """The passages with the best BM25 for the rarest words of the query; ties by number.

        Raises:
            ServiceError: If the index is damaged.
        """
        words = self._words.of(cleaned(query))
        try:
            connection = self._connection()
            best = _best(self._scores(connection, words), count)
            ask = "SELECT title, text, url FROM passages WHERE id = ?"
            return [Passage(*connection.execute(ask, (row + 1,)).fetchone()) for row in best]
        except (sqlite3.Error, DataError, ValueError, TypeError, IndexError) as error:
            raise ServiceError("search", f"{self.folder / FILE}: {error}") from error

    def _scores(self, connection: sqlite3.Connection, words: list[str]) -> Scores:
        """BM25 of each passage; 0 where no word stands in it."""
        scores = np.zeros(self.passages, np.float32)
        for number, held in self._rarest(connection, words):
            ask = "SELECT numbers, counts FROM places WHERE rowid = ?"
            numbers, counts = connection.execute(ask, (number,)).fetchone()
            rows = np.frombuffer(numbers, _NUMBERS)
            times = np.frombuffer(counts, _COUNTS).astype(np.float32)
            rarity = np.float32(np.log1p((self.passages - held + 0.5) / (held + 0.5)))
            scores[rows] += rarity * times / (times + self._damping[rows])
        return scores

    def _rarest(
        self, connection: sqlite3.Connection, words: list[str]
    ) -> Iterator[tuple[int, int]]:
        """Row of each word that is in the index, and how many passages hold it, rarest first."""
        marks = ", ".join("?" * len(words))
        rows = connection.execute(
            f"SELECT rowid, passages FROM places WHERE word IN ({marks}) "
            "ORDER BY passages, word LIMIT ?",
            (*words, _MOST_WORDS),
        ).fetchall()
        left = self.budget
        for place, (number, held) in enumerate(rows):
            left -= held
            if place and left < 0:
                return
            yield number, held

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection, read-only."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            file = self.folder / FILE
            if not file.is_file():
                raise DataError(
                    f"{self.folder} holds no index of words: make one by `visenv search build`."
                )
            uri = f"{file.as_uri()}?mode=ro&immutable=1"
            found = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._local.connection = found
            self._open.append(found)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class _Words:
    """The words of a query as FTS5 has those of the passages: asked of FTS5 itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )
        self._connection.executescript(
            f"""
            CREATE VIRTUAL TABLE query USING fts5 (text, tokenize = "{_TOKENIZER}");
            CREATE VIRTUAL TABLE words USING fts5vocab (query, 'row');
            """
        )

    def of(self, text: str) -> list[str]:
        """Each word once."""
        with self._lock:
            self._connection.execute("DELETE FROM query")
            self._connection.execute("INSERT INTO query VALUES (?)", (text,))
            return [word for (word,) in self._connection.execute("SELECT term FROM words")]


def _best(scores: Scores, count: int) -> list[int]:
    """The `count` highest scores above 0; ties by number."""
    found = np.flatnonzero(scores)
    if len(found) > count:
        found = found[scores[found] >= np.partition(scores[found], -count)[-count]]
    return [int(row) for row in found[np.lexsort((found, -scores[found]))][:count]]


def _storable(text: str) -> str:
    """The text without what SQLite or UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
