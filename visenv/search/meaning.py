"""Search by meaning: passages embedded once, kept by Chroma, compared exactly.

Chroma is the store of record, so that a build that was stopped goes on where it was; queries are
answered from the array derived from it (`visenv.search.nearest`), in any number of processes, as
for documents (`visenv.documents.page_store` has the reasons).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from visenv.documents.collection import open_collection
from visenv.documents.embedder import Vectors, check_same_embedder
from visenv.documents.writer_lock import WriterLock
from visenv.errors import DataError, ServiceError
from visenv.files import replacing
from visenv.search.encoder import SentenceEncoder, sentence_encoder
from visenv.search.nearest import NearestVectors
from visenv.search.passage import Passage, cleaned
from visenv.search.words import FILE as PASSAGES

STORE = "chroma"
VECTORS = "vectors.npy"
MADE_BY = "vectors.json"
_BATCH = 256


def build(
    folder: Path, encoder: SentenceEncoder, on_passage: Callable[[], None] | None = None
) -> int:
    """Embed the passages of an index of words that lies in `folder`; return how many are new.

    Args:
        folder: Where `visenv.search.words.build` wrote.
        encoder: What embeds.
        on_passage: Called for each passage done.

    Raises:
        DataError: If there are no passages, or what an earlier build stored is damaged.
        ConfigurationError: If another encoder began this index, or another process is writing.
    """
    lock = WriterLock(folder)
    try:
        new, vectors = _embed(folder, encoder, on_passage or (lambda: None))
    except Exception as error:
        if type(error).__module__ != "chromadb.errors":
            raise
        raise DataError(
            f"{folder / STORE} is damaged: {error} Delete it; then all is embedded again."
        ) from error
    finally:
        lock.release()
    with replacing(folder / VECTORS) as partial, partial.open("wb") as file:
        np.save(file, vectors)
    made_by = {"encoder": encoder.name, "dimension": encoder.dimension, "passages": len(vectors)}
    with replacing(folder / MADE_BY) as partial:
        partial.write_text(json.dumps(made_by), encoding="utf-8")
    return new


def _embed(
    folder: Path, encoder: SentenceEncoder, on_passage: Callable[[], None]
) -> tuple[int, Vectors]:
    """How many passages are new, and the vectors of all."""
    client, collection = open_collection(folder / STORE, encoder, "passages")
    try:
        new = 0
        rows: list[Vectors] = []
        for batch in _batches(folder / PASSAGES):
            ids = [hashlib.sha256(text.encode()).hexdigest() for text in batch]
            new += _embed_missing(collection, encoder, dict(zip(ids, batch, strict=True)))
            rows.append(_vectors(collection, ids))
            for _ in batch:
                on_passage()
        return new, np.concatenate(rows)
    finally:
        client.close()


def _batches(file: Path) -> Iterator[list[str]]:
    """What is embedded of each passage, title and text, in the order of their numbers."""
    if not file.is_file():
        raise DataError(f"{file.parent} holds no passages: `visenv search build` writes them.")
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT title, text FROM passages ORDER BY id")
        while batch := rows.fetchmany(_BATCH):
            yield [f"{title}\n{text}" for title, text in batch]
    finally:
        connection.close()


def _embed_missing(collection: Any, encoder: SentenceEncoder, texts: dict[str, str]) -> int:
    known = set(collection.get(ids=list(texts), include=[])["ids"])
    missing = {name: text for name, text in texts.items() if name not in known}
    if missing:
        vectors = encoder.encode(list(missing.values()))
        collection.add(ids=list(missing), embeddings=vectors)
    return len(missing)


def _vectors(collection: Any, ids: list[str]) -> Vectors:
    distinct = list(dict.fromkeys(ids))
    held = collection.get(ids=distinct, include=["embeddings"])
    by_id = dict(zip(held["ids"], held["embeddings"], strict=True))
    return np.array([by_id[name] for name in ids], np.float32)


class MeaningSearch:
    """Searches an index that `build` wrote.

    Args:
        folder: Of the index.
        device: PyTorch device of the encoder.

    Raises:
        DataError: If the folder holds no whole index of vectors.
    """

    def __init__(self, folder: str | Path, device: str = "cpu") -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.device = device
        try:
            made_by = json.loads((self.folder / MADE_BY).read_text(encoding="utf-8"))
            self._encoder = sentence_encoder(str(made_by["encoder"]), device)
            self._dimension, self.passages = int(made_by["dimension"]), int(made_by["passages"])
        except FileNotFoundError:
            raise DataError(
                f"{self.folder} holds no index of vectors: make one by `visenv search build "
                "--meaning`."
            ) from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise DataError(f"{self.folder / MADE_BY} cannot be read: {error!r}") from error
        if self._vectors.shape != (self.passages, self._dimension):
            raise DataError(
                f"{self.folder / VECTORS} holds {list(self._vectors.shape)} numbers, "
                f"{[self.passages, self._dimension]} were written."
            )
        self.name = f"meaning:{self._encoder.name}:{self.passages}"

    @cached_property
    def _vectors(self) -> Vectors:
        try:
            vectors: Vectors = np.load(self.folder / VECTORS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"{self.folder / VECTORS} cannot be read: {error}") from error
        return vectors

    @cached_property
    def _nearest(self) -> NearestVectors:
        return NearestVectors(self._vectors)

    def search(self, query: str, count: int) -> list[Passage]:
        """The passages nearest in meaning, by cosine.

        Raises:
            ServiceError: If the index is damaged.
        """
        text = cleaned(query)
        if not text:
            return []
        return self._passages(self.nearest(text, count))

    def nearest(self, query: str, count: int) -> list[int]:
        """Rows of the nearest passages, the first being 0; ties by number.

        Raises:
            ConfigurationError: If the encoder is not the one that made the index.
        """
        check_same_embedder(self._encoder.name, self._dimension, self._encoder, str(self.folder))
        return self._nearest.find(self._encoder.encode([query])[0], count)

    def _passages(self, rows: list[int]) -> list[Passage]:
        uri = f"{(self.folder / PASSAGES).as_uri()}?mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(uri, uri=True)
            try:
                ask = "SELECT title, text, url FROM passages WHERE id = ?"
                found = [connection.execute(ask, (row + 1,)).fetchone() for row in rows]
            finally:
                connection.close()
            return [Passage(*row) for row in found]
        except (sqlite3.Error, TypeError) as error:
            raise ServiceError("search", f"{self.folder / PASSAGES}: {error}") from error

    def close(self) -> None:
        """Let go of the vectors."""
        for held in ("_vectors", "_nearest"):
            vars(self).pop(held, None)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
