"""Searches passages by words: BM25 over a corpus, in one SQLite file.

FTS5, the full-text engine of SQLite, reads the corpus: it splits texts into words, stems the words
and lists the passages of each word. Texts in scripts without blanks are first split into the words
of `visenv.text.words`, and queries in the same way. The ranking of FTS5 looks up the length of each
passage that contains any word of the query, at about a microsecond each, so that a single "the"
costs 100 ms in 100,000 passages. This module instead stores the postings of each word as arrays,
and ranks with `visenv.retrieval.bm25.Bm25`.

The index contains the number of passages of each word. A query uses only its rarest words, whose
numbers of passages add up to at most `BUDGET`, so that common words cannot make a query slow in a
large corpus. The rarest word is always used.

`docs/search.md` has measurements and alternatives.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
import weakref
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.decoding.sqlite import close_all, open_database
from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.files import output_folder, replacing
from visenv.retrieval.bm25 import Bm25, Postings, Scores, length_norms, term_weights
from visenv.search.corpus import Passage, cleaned
from visenv.text.words import with_blanks

FILE = "words.sqlite"
FORMAT = 4
BUDGET = 100_000
"""Largest sum of the numbers of passages that contain each word of a query."""

_MOST_WORDS = 32
_TITLE_WEIGHT = 2
_K1, _B = 1.2, 0.75
"""Parameters of BM25 in SQLite and Lucene."""
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""Vowel signs (Mn, Mc) belong to words of Indian scripts; Latin accents are removed in any case."""
_NUMBERS, _COUNTS, _WEIGHTS = "<u4", "u1", "<f4"
_MOST_COUNTED = 255


def build(folder: Path, passages: Iterable[Passage]) -> int:
    """Write the index of `passages` into `folder`, completely or not at all; return their number.

    Raises:
        DataError: If there are no passages.
    """
    output_folder(folder)
    with replacing(folder / FILE) as partial:
        connection = sqlite3.connect(partial)
        try:
            count = _fill(connection, passages)
        finally:
            connection.close()
        if not count:
            raise DataError(
                "A search index needs at least one passage, and the corpus has none: check the "
                "files of the corpus."
            )
    return count


def _fill(connection: sqlite3.Connection, passages: Iterable[Passage]) -> int:
    connection.create_function("with_blanks", 1, with_blanks, deterministic=True)
    connection.executescript(
        f"""
        PRAGMA journal_mode = OFF;
        PRAGMA synchronous = OFF;
        CREATE TABLE passages (id INTEGER PRIMARY KEY, title TEXT, text TEXT, url TEXT);
        CREATE TABLE postings (word TEXT PRIMARY KEY, passages INTEGER, numbers BLOB, weights BLOB);
        CREATE TABLE facts (format INTEGER, passages INTEGER);
        CREATE TABLE temp.counted (word TEXT, numbers BLOB, counts BLOB);
        CREATE VIRTUAL TABLE temp.words USING fts5 (
            title, text, content = '', tokenize = "{TOKENIZER}"
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
            "INSERT INTO temp.words (rowid, title, text) "
            "SELECT id, with_blanks(title), with_blanks(text) FROM passages"
        )
        (count,) = connection.execute("SELECT count(*) FROM passages").fetchone()
        lengths = [0] * count
        counted = _counted(connection, lengths)
        connection.executemany("INSERT INTO temp.counted VALUES (?, ?, ?)", counted)
        weighted = _weighted(connection, length_norms(lengths, _K1, _B))
        connection.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", weighted)
        connection.execute("INSERT INTO facts VALUES (?, ?)", (FORMAT, count))
    return int(count)


def _counted(
    connection: sqlite3.Connection, lengths: list[int]
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield each word, the indices of its passages, and its number of occurrences in each of them.

    A word of a title counts twice. The number of words of each passage is added up in `lengths`.
    """
    weights = {"title": _TITLE_WEIGHT, "text": 1}
    rows = connection.execute("SELECT term, doc - 1, col FROM temp.instances")
    for word, places in groupby(rows, itemgetter(0)):
        counts: dict[int, int] = {}
        for _, number, column in places:
            counts[number] = counts.get(number, 0) + weights[column]
            lengths[number] += 1
        often = bytes([min(count, _MOST_COUNTED) for count in counts.values()])
        yield word, struct.pack(f"<{len(counts)}I", *counts), often


def _weighted(
    connection: sqlite3.Connection, norms: Scores
) -> Iterator[tuple[str, int, bytes, bytes]]:
    """Yield each word, its number of passages, their indices, and its weight in each of them."""
    for word, numbers, often in connection.execute("SELECT * FROM temp.counted"):
        counts = np.frombuffer(often, _COUNTS)
        weights = term_weights(
            counts, norms[np.frombuffer(numbers, _NUMBERS)], len(counts), len(norms)
        )
        yield word, len(counts), numbers, weights.astype(_WEIGHTS).tobytes()


class WordSearch:
    """Searches an index that `build` wrote.

    Args:
        folder: Folder of the index.
        budget: Largest sum of the numbers of passages that contain each word of a query. A larger
            budget makes queries of common words more exact, but slower.

    Raises:
        DataError: If the folder contains no complete index.
        ConfigurationError: If `budget` is below 1.
    """

    def __init__(self, folder: str | Path, budget: int = BUDGET) -> None:
        if budget < 1:
            raise ConfigurationError(f"budget must be at least 1 passage, got {budget}.")
        self.folder = Path(folder).expanduser().resolve()
        self.budget = budget
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        weakref.finalize(self, close_all, self._open)  # also if the constructor raises
        try:
            self.passages = self._count()
            self._bm25 = Bm25(self.passages, self._postings)
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise DataError(f"{self.folder / FILE} is not a readable index: {error}") from None
        self._words = _Words()
        self.name = f"words:{self.passages}:{budget}"

    def _count(self) -> int:
        """Return the number of passages, if the file has the format of this version."""
        ask = "SELECT format, passages, (SELECT max(id) FROM passages) FROM facts"
        number, count, last = self._connection().execute(ask).fetchone()
        if number != FORMAT:
            raise DataError(
                f"{self.folder / FILE} has format {number}; this version reads {FORMAT}. Build "
                "the index again with `visenv search build`."
            )
        if count != last:
            raise ValueError(f"it holds {last} passages, expected {count}")
        if count > (self.folder / FILE).stat().st_size:  # memory for all of them is allocated
            raise ValueError(f"it is too small for {count} passages")
        return int(count)

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the best passages for the rarest words of the query, by BM25.

        Ties are ordered by index.

        Raises:
            ServiceError: If the index is damaged.
        """
        words = self._words.of(with_blanks(cleaned(query)))
        try:
            best = self._bm25.best(self._rarest(words), count)
            return read_passages(self._connection(), best)
        except (sqlite3.Error, DataError, ValueError, TypeError, LookupError) as error:
            raise ServiceError("search", f"{self.folder / FILE}: {error}") from error

    def _rarest(self, words: list[str]) -> Iterator[str]:
        """Yield the words that are in the index, the rarest first, within the budget."""
        marks = ", ".join("?" * len(words))
        rows = self._connection().execute(
            f"SELECT word, passages FROM postings WHERE word IN ({marks}) "
            "ORDER BY passages, word LIMIT ?",
            (*words, _MOST_WORDS),
        )
        left = self.budget
        for place, (word, held) in enumerate(rows.fetchall()):
            left -= held
            if place and left < 0:
                return
            yield word

    def _postings(self, word: str) -> Postings:
        ask = "SELECT numbers, weights FROM postings WHERE word = ?"
        numbers, weights = self._connection().execute(ask, (word,)).fetchone()
        return Postings(np.frombuffer(numbers, _NUMBERS), np.frombuffer(weights, _WEIGHTS))

    def close(self) -> None:
        """Close the connections of all threads."""
        close_all(self._open)
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        """Return the read-only connection of this thread."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            file = self.folder / FILE
            if not file.exists():
                raise DataError(
                    f"{self.folder} holds no index of words: run `visenv search build`."
                )
            found = self._local.connection = open_database(file)
            self._open.append(found)
        return found

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def read_passages(connection: sqlite3.Connection, rows: Iterable[int]) -> list[Passage]:
    """Return the passages with these indices, from 0, of an index of words.

    Raises:
        DataError: If the index does not contain one of them.
    """
    ask = "SELECT title, text, url FROM passages WHERE id = ?"
    found = [connection.execute(ask, (int(row) + 1,)).fetchone() for row in rows]
    if not all(fields and all(isinstance(field, str) for field in fields) for fields in found):
        raise DataError(
            "the index lacks a passage, or its title, text or address is no text: build it again "
            "with `visenv search build`"
        )
    return [Passage(*fields) for fields in found]


class _Words:
    """Splits a query into words as FTS5 split the passages."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._connection.close)
        self._connection.executescript(
            f"""
            CREATE VIRTUAL TABLE query USING fts5 (text, tokenize = "{TOKENIZER}");
            CREATE VIRTUAL TABLE words USING fts5vocab (query, 'row');
            """
        )

    def of(self, text: str) -> list[str]:
        """Return each word of a text once."""
        with self._lock:
            self._connection.execute("DELETE FROM query")
            self._connection.execute("INSERT INTO query VALUES (?)", (text,))
            return [word for (word,) in self._connection.execute("SELECT term FROM words")]


def _storable(text: str) -> str:
    """Return the text without characters that SQLite or UTF-8 cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
