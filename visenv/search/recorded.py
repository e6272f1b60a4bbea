"""Records answers of a search engine on disk, so that they can be replayed.

A training run that uses the live web cannot be repeated, and every epoch costs money. With a
record, the first run asks the engine, and later runs replay its answers.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from filelock import lock_descriptor
from typing_extensions import override

from visenv.decoding.files import read_lines
from visenv.decoding.json_text import read_json
from visenv.errors import DataError, ServiceError
from visenv.files import open_output
from visenv.search.corpus import Passage, Searcher, cleaned

Key = tuple[str, int]


class RecordedSearch:
    """Answers from a JSONL file; other queries are sent to an engine, and their answers recorded.

    A line is ``{"query", "count", "engine", "passages": [[title, text, url], …]}``. Several
    processes may share a file, because whole lines are appended under a lock.

    Args:
        file: The record, which is created by the first write.
        searcher: The engine to ask; None only replays.

    Raises:
        DataError: If the file contains an invalid line, except for an incomplete last line.
    """

    def __init__(self, file: str | Path, searcher: Searcher | None = None) -> None:
        self.file = Path(file).expanduser()
        self.searcher = searcher
        self.name = f"recorded:{searcher.name if searcher else self.file.name}"
        self._lock = threading.Lock()
        self._known = _read(self.file)
        if searcher is None and not self._known:
            raise DataError(f"There is no recorded search in {str(self.file)!r}.")

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the recorded answer, or ask the engine and record its answer.

        Raises:
            ServiceError: If the record has no answer and there is no engine, or the engine failed.
        """
        key = (cleaned(query), count)
        with self._lock:
            found = self._known.get(key)
        if found is not None:
            return list(found)
        if self.searcher is None:
            raise ServiceError(
                "search",
                f"{self.file} holds no answer to {key[0]!r} with {count} passages, and no engine "
                "is given to record it.",
            )
        passages = self.searcher.search(key[0], count)
        with self._lock:
            self._write(key, passages, self.searcher.name)
            self._known[key] = tuple(passages)
        return passages

    def close(self) -> None:
        """Close the wrapped engine."""
        if self.searcher is not None:
            self.searcher.close()

    def _write(self, key: Key, passages: list[Passage], engine: str) -> None:
        line = {"query": key[0], "count": key[1], "engine": engine, "passages": passages}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open_output(self.file, "ab+") as file:
            lock_descriptor(file.fileno(), poll_interval=0.01)  # until the file is closed
            if file.seek(0, 2):
                file.seek(-1, 2)
                if file.read(1) != b"\n":  # another process was killed during a write
                    file.write(b"\n")
            file.write(json.dumps(line).encode() + b"\n")

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {"file": self.file, "searcher": self.searcher}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _read(file: Path) -> dict[Key, tuple[Passage, ...]]:
    known: dict[Key, tuple[Passage, ...]] = {}
    if not file.exists():
        return known
    for number, line in enumerate(read_lines(file), start=1):
        try:
            row = read_json(line)
            passages = tuple([Passage(*map(str, fields)) for fields in row["passages"]])
            known[str(row["query"]), int(row["count"])] = passages
        except (DataError, ValueError, TypeError, LookupError) as error:
            if not line.endswith(b"\n") or _cut_off(line):
                continue
            raise DataError(f"{file}:{number} is not a recorded search: {error}") from error
    return known


def _cut_off(line: bytes) -> bool:
    """Return whether the line is an incomplete record, whose writer was killed."""
    return line.startswith(b'{"query"') and not line.rstrip().endswith(b"}")
