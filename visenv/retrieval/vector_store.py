"""Stores vectors in a Chroma collection that one process writes, and seals them for readers.

Documents and search use it. Chroma holds the original data, so that a killed build can continue.
Queries do not use Chroma: its filtered query searches the whole collection, it hangs in forked
children, and a reader that is open while another process writes fails (issues 3792, 3769 and 4460
of chroma). Readers use the array that `VectorStore.seal` derives
(`visenv.retrieval.sealed_vectors`), and compare exactly.

`open_collection` raises an error in situations in which Chroma would hang or fail.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from filelock import FileLock, Timeout

from visenv.errors import ConfigurationError, DataError
from visenv.files import (
    check_no_link,
    check_no_links_in,
    open_output,
    output_folder,
    write_text,
)
from visenv.packages import missing_package
from visenv.retrieval.sealed_vectors import SealedVectors, StoreSeal, read_manifest, write_seal
from visenv.retrieval.vectors import VectorMaker, Vectors, check_same_embedder, checked

COLLECTION = "vectors"

# Chroma's own index is never queried, so that its cheapest settings are used: 3.5 times faster.
_INDEX = {"hnsw": {"space": "ip", "ef_construction": 8, "max_neighbors": 4}}

FORKED = (
    "Chroma hangs in a process forked from one that used it. Read with SealedVectors there, or "
    "start the process by spawn and open the store in it."
)

_first_process: int | None = None  # the process that started Chroma; a forked child inherits this

FOLDER = "chroma"

_ROWS_READ = 4096
_UNSEALED = "unsealed"


def open_collection(folder: Path, embedder: VectorMaker) -> tuple[Any, Any]:
    """Return a client of Chroma, which sends no telemetry, and its collection.

    Only one process at a time may call this. The caller closes the client. The collection does not
    embed anything by itself, and is created if it does not exist.

    Args:
        folder: Folder of Chroma's files.
        embedder: The embedder, whose name and dimension are stored with the collection.

    Raises:
        ConfigurationError: If another embedder made the collection, chromadb is not installed, or
            this process is forked from one that used Chroma.
    """
    global _first_process  # noqa: PLW0603 - a fact of the process, inherited by a fork
    try:
        import chromadb
        from chromadb.config import Settings
        from chromadb.errors import NotFoundError
    except ImportError as error:
        raise missing_package("A store of vectors", error, "documents") from error
    if _first_process not in (None, os.getpid()):
        raise ConfigurationError(FORKED)
    _first_process = os.getpid()
    settings = Settings(anonymized_telemetry=False)
    client: Any = chromadb.PersistentClient(str(folder), settings=settings)
    try:
        try:
            found = client.get_collection(COLLECTION, embedding_function=None)
        except NotFoundError:
            made_by = {"embedder": embedder.name, "dimension": embedder.dimension}
            found = client.create_collection(
                COLLECTION, embedding_function=None, metadata=made_by, configuration=_INDEX
            )
        kept: dict[str, Any] = found.metadata or {}
        name, dimension = kept.get("embedder", "unknown"), kept.get("dimension", 0)
        check_same_embedder(name, dimension, embedder, str(folder))
    except BaseException:
        client.close()
        raise
    return client, found


@contextmanager
def damage_as_data_error(folder: Path) -> Iterator[None]:
    """Raise a `DataError` that suggests a remedy if Chroma cannot read the data in `folder`."""
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "chromadb.errors":  # by name, because chromadb may be missing
            raise
        raise DataError(
            f"{folder} is damaged: {error} Delete it, and embed everything again."
        ) from error


class VectorItem(NamedTuple):
    """Describes an item that has vectors: a page of a document, or a passage.

    Attributes:
        key: Name of the item in the store.
        vectors: The vectors of the item, ``[vectors, dimension]``; an item may have none.
        facts: Values that are stored with the vectors, for `VectorStore.facts` and
            `VectorStore.remove`.
    """

    key: str
    vectors: Vectors
    facts: Mapping[str, str | int] = {}


class VectorStore:
    """Stores the vectors of items, and seals them for readers.

    Each vector is a row of the collection, named key/number. An item without vectors has one row of
    zeros and a fact that marks it. An item is complete if all its rows exist. A process may
    therefore be killed at any time: missing items are embedded again.

    Close the store before forking if possible. A child that is forked while the store is open may
    read, but hangs in Chroma when its interpreter shuts down (children of multiprocessing do not do
    that).

    Args:
        folder: Folder of the store, which is created if it does not exist.
        embedder: The maker of the vectors. The store contains its name and dimension.

    Raises:
        ConfigurationError: If another embedder made the store, another process is writing, chromadb
            is not installed, this process is forked from one that used Chroma, or the folder
            contains a link.
        DataError: If the data of Chroma are damaged.
    """

    def __init__(self, folder: str | Path, embedder: VectorMaker) -> None:
        self.folder = Path(folder)
        self.embedder = embedder
        output_folder(self.folder)
        check_no_links_in(self.folder / FOLDER)
        self._process = os.getpid()
        with ExitStack() as undo:
            undo.callback(_locked(self.folder).release)
            with self._chroma():
                self._client, self._collection = open_collection(self.folder / FOLDER, embedder)
            undo.callback(self._client.close)
            self._undo = undo.pop_all()

    def put(self, items: Sequence[VectorItem]) -> None:
        """Store items; existing items of the same keys are replaced.

        Raises:
            ConfigurationError: If the vectors are invalid. Nothing is stored.
        """
        rows = [row for item in items for row in self._rows(item)]
        if not rows:
            return
        with self._writing():
            heads = [f"{item.key}/0" for item in items]
            if replaced := list(self._get(heads)):  # otherwise their facts would remain
                self._collection.delete(ids=replaced)
            for part in _parts(rows, self._client.get_max_batch_size()):
                names, vectors, facts = zip(*part, strict=True)
                self._collection.upsert(
                    ids=list(names), embeddings=np.stack(vectors), metadatas=list(facts)
                )

    def remove(self, **facts: str | int) -> None:
        """Delete the items that were stored with this fact; the sealed vectors do not change."""
        with self._writing():
            self._collection.delete(where=facts)

    def counts(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the number of vectors of those items that are stored."""
        heads: dict[str, int] = {}
        with self._chroma():
            for part in _parts(list(dict.fromkeys(keys)), _ROWS_READ):
                found = self._get([f"{key}/0" for key in part], "metadatas")
                for name, facts in found.items():
                    heads[_key(name)] = (facts or {}).get("vectors", 1)
            others = [f"{key}/{row}" for key, count in heads.items() for row in range(1, count)]
            there = {name for part in _parts(others, _ROWS_READ) for name in self._get(part)}
        lost = {_key(name) for name in others if name not in there}
        return {key: count for key, count in heads.items() if key not in lost}

    def facts(self) -> dict[str, Mapping[str, Any]]:
        """Return the facts of each stored item, by its key."""
        heads: dict[str, Mapping[str, Any]] = {}
        with self._chroma():
            for start in range(0, self._collection.count(), _ROWS_READ):
                found = self._collection.get(include=["metadatas"], limit=_ROWS_READ, offset=start)
                rows = zip(found["ids"], found["metadatas"], strict=True)
                heads |= {_key(name): facts or {} for name, facts in rows if name.endswith("/0")}
        whole = self.counts(heads)
        return {key: facts for key, facts in heads.items() if key in whole}

    # ------------------------------------------------------------------ sealing

    def stale(self, layout: Mapping[str, Sequence[str]]) -> bool:
        """Return whether the sealed vectors differ from those that `seal` would write."""
        if (self.folder / _UNSEALED).exists():
            return True
        try:
            sealed, array = read_manifest(self.folder)
        except (FileNotFoundError, DataError):
            return True
        made_by = self.embedder.name, self.embedder.dimension, _digest(layout)
        held = sealed.embedder, sealed.dimension, sealed.layout
        return held != made_by or not (self.folder / array).is_file()

    def seal(self, layout: Mapping[str, Sequence[str]]) -> SealedVectors:
        """Write the array for readers, unless the existing one is up to date.

        Args:
            layout: The groups to seal, and the keys of their items in order. A key may occur
                several times.

        Raises:
            DataError: If an item is not in the store.
        """
        if self.stale(layout):
            counts = self.counts(key for keys in layout.values() for key in keys)
            try:
                groups = {name: [counts[key] for key in keys] for name, keys in layout.items()}
            except KeyError as error:
                raise DataError(
                    f"{self.folder} has no vectors of the item {error.args[0]!r}: store it with "
                    "put before seal."
                ) from error
            seal = StoreSeal(self.embedder.name, self.embedder.dimension, groups, _digest(layout))
            with self._chroma():
                write_seal(self.folder, seal, self._blocks(layout, counts))
            (self.folder / _UNSEALED).unlink(missing_ok=True)
        return SealedVectors(self.folder)

    def _blocks(
        self, layout: Mapping[str, Sequence[str]], counts: Mapping[str, int]
    ) -> Iterator[Vectors]:
        rows = [
            f"{key}/{row}" for keys in layout.values() for key in keys for row in range(counts[key])
        ]
        for part in _parts(rows, _ROWS_READ):
            found = self._get(list(dict.fromkeys(part)), "embeddings")
            yield np.array([found[name] for name in part], np.float32)

    # ------------------------------------------------------------------ Chroma

    def _rows(self, item: VectorItem) -> Iterator[tuple[str, Vectors, dict[str, str | int] | None]]:
        """Yield the rows of an item: name, vector ``[dimension]``, facts."""
        count = len(checked(item.vectors, self.embedder))
        # Chroma takes a third longer to store a row with facts, so that the usual count is omitted.
        facts = {**item.facts, "vectors": count} if item.facts or count != 1 else None
        shown = item.vectors if count else np.zeros((1, self.embedder.dimension), np.float32)
        for row, vector in enumerate(shown):
            yield f"{item.key}/{row}", vector, facts

    def _get(self, names: Sequence[str], include: str | None = None) -> dict[str, Any]:
        """Return the existing rows among these, with one additional field of Chroma."""
        if not names:  # otherwise Chroma would return all rows
            return {}
        found = self._collection.get(ids=list(names), include=[include] if include else [])
        return dict(zip(found["ids"], found[include or "ids"], strict=True))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._chroma():
            open_output(self.folder / _UNSEALED, "ab").close()
            yield

    @contextmanager
    def _chroma(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise ConfigurationError(FORKED)
        with damage_as_data_error(self.folder / FOLDER):
            yield

    def close(self) -> None:
        """Release Chroma and the lock, without sealing."""
        if self._process == os.getpid():
            self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(folder: Path) -> FileLock:
    """Return the lock of the only writer, which is released when its process ends."""
    check_no_link(folder / "writer.lock")
    lock = FileLock(folder / "writer.lock", blocking=False, thread_local=False)
    holder = folder / "writer.pid"
    try:
        lock.acquire()
    except Timeout as error:
        who = holder.read_text() if holder.is_file() else "unknown"
        raise ConfigurationError(
            f"{folder} is being written by process {who}; it has one writer at a time. Wait for it "
            "to close, or read with SealedVectors."
        ) from error
    write_text(holder, str(os.getpid()))
    return lock


def _key(row: str) -> str:
    return row.rpartition("/")[0]


def _parts(rows: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(rows), most):
        yield rows[start : start + most]


def _digest(layout: Mapping[str, Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for name, keys in layout.items():
        digest.update(json.dumps([name, *keys]).encode())
    return digest.hexdigest()
