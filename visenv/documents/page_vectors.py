"""Exact search inside one document: its vectors, side by side in one memory-mapped file.

`PageStore` derives the file from its collection (`seal`); all readers use only the file. Searching
20 pages touches 20 rows, whatever the size of the store, and reading needs neither a lock nor a
client: forked, spawned and pickled readers are alike.

A folder holds ``sealed.json`` (embedder, documents, name of the array) and the array
``vectors-<n>.npy``. Both are written beside the old ones and put in place by a rename, the array
first: a reader sees the old seal or the new one, whole. It looks for a new one at each search.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visenv.documents.embedder import Vectors, max_sim
from visenv.documents.names import unknown_document
from visenv.errors import DataError
from visenv.files import replacing

MANIFEST = "sealed.json"
_FORMAT = 1


class Seal(NamedTuple):
    """What a folder holds, as of its last sealing.

    Attributes:
        embedder: Name of the embedder.
        dimension: Length of its vectors.
        counts: The number of vectors of each page, by document.
    """

    embedder: str
    dimension: int
    counts: Mapping[str, Sequence[int]]

    def starts(self) -> dict[str, int]:
        """The first row of each document."""
        rows = np.cumsum([0, *(sum(counts) for counts in self.counts.values())])
        return dict(zip(self.counts, map(int, rows), strict=False))


class _Opened(NamedTuple):
    seal: Seal
    starts: dict[str, int]
    vectors: Vectors
    stamp: tuple[int, int]


class PageVectors:
    """The sealed vectors of a folder, read-only.

    Any number of processes and threads may share it; it pickles as the name of its folder.

    Args:
        folder: What a `PageStore` sealed.

    Raises:
        DataError: If nothing was sealed there, or it cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._opened = self._open()

    @property
    def seal(self) -> Seal:
        """What is there now."""
        return self._current().seal

    def pages(self, document: str) -> int:
        """How many pages of the document there are.

        Raises:
            DataError: If there is no such document; names the nearest.
        """
        return len(self._counts(self._current(), document))

    def search(self, document: str, query: Vectors, count: int) -> list[int]:
        """The best `count` pages of a document, best first, ties to the earlier page.

        Pages without vectors come last.

        Args:
            document: Name of the document.
            query: The query's vectors, float32 ``[vectors, dimension]``.
            count: Most pages to return.

        Raises:
            DataError: If there is no such document; names the nearest.
        """
        opened = self._current()
        counts = self._counts(opened, document)
        start = opened.starts[document]
        scores = max_sim(opened.vectors[start : start + sum(counts)], counts, query)
        order = np.argsort(-scores, kind="stable")[:count]
        return [int(page) + 1 for page in order]

    def _counts(self, opened: _Opened, document: str) -> Sequence[int]:
        counts = opened.seal.counts.get(document)
        if counts is None:
            there = unknown_document(document, opened.seal.counts)
            raise DataError(f"{there} {self.folder} holds what was ingested and sealed.")
        return counts

    # ------------------------------------------------------------------ opening

    def _current(self) -> _Opened:
        """The last seal; opened anew when there is a newer one."""
        if _stamp(self.folder) != self._opened.stamp:
            self._opened = self._open()
        return self._opened

    def _open(self) -> _Opened:
        try:
            return self._open_once()
        except FileNotFoundError:
            pass  # a newer seal took the array away between the two readings
        try:
            return self._open_once()
        except FileNotFoundError as error:
            raise DataError(
                f"Nothing is sealed in {self.folder}: ingest documents with PageStore, and seal it."
            ) from error

    def _open_once(self) -> _Opened:
        stamp = _stamp(self.folder)
        seal, array = read_manifest(self.folder)
        starts = seal.starts()
        rows = sum(map(sum, seal.counts.values()))
        try:
            vectors = np.load(self.folder / array, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise DataError(f"{self.folder / array} cannot be read: {error}.") from error
        if vectors.shape != (rows, seal.dimension) or vectors.dtype != np.float32:
            raise DataError(
                f"{self.folder / array} holds {vectors.dtype} {list(vectors.shape)}, the manifest "
                f"says float32 {[rows, seal.dimension]}: delete {MANIFEST} and seal again."
            )
        # A plain array on the same memory: a slice of a memmap costs a Python object of its own.
        return _Opened(seal, starts, np.asarray(vectors), stamp)

    def __getstate__(self) -> dict[str, Path]:
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Path]) -> None:
        self.folder = state["folder"]
        self._opened = self._open()


def read_manifest(folder: Path) -> tuple[Seal, str]:
    """The seal, and the name of the array.

    Raises:
        FileNotFoundError: If nothing was sealed.
        DataError: If the file is not a manifest of this version.
    """
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    try:
        held = json.loads(text)
        if held["format"] != _FORMAT:
            raise DataError(f"{folder / MANIFEST} has format {held['format']}, not {_FORMAT}.")
        return Seal(held["embedder"], held["dimension"], held["documents"]), held["array"]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder / MANIFEST} is no manifest: {error!r}.") from error


def write_seal(folder: Path, seal: Seal, rows: Iterable[tuple[int, Vectors]]) -> None:
    """Write a seal and put it in place; the one before is deleted.

    Args:
        folder: Where to.
        seal: What it will hold.
        rows: Every vector once, in any order: row number and ``[n, dimension]`` from there on.

    Raises:
        DataError: If `rows` are more or fewer than `seal` says.
    """
    total = sum(map(sum, seal.counts.values()))
    name = f"vectors-{_next_number(folder)}.npy"
    partial = folder / f"{name}.partial"
    array = _new_array(partial, total, seal.dimension)
    written = 0
    for row, vectors in rows:
        array[row : row + len(vectors)] = vectors
        written += len(vectors)
    if written != total:
        raise DataError(f"{folder} was to have {total} vectors, and gave {written}.")
    array.flush()  # safe before the manifest names it: a power cut would leave zeros to search
    partial.rename(folder / name)
    manifest = {
        "format": _FORMAT,
        "embedder": seal.embedder,
        "dimension": seal.dimension,
        "array": name,
        "documents": {document: list(counts) for document, counts in seal.counts.items()},
    }
    _replace(folder / MANIFEST, json.dumps(manifest))
    for old in folder.glob("vectors-*"):
        if old.name != name:
            old.unlink()


def _new_array(path: Path, rows: int, dimension: int) -> np.memmap[Any, np.dtype[np.float32]]:
    from numpy.lib import format as npy

    opened: np.memmap[Any, np.dtype[np.float32]] = npy.open_memmap(  # type: ignore[no-untyped-call]
        path, "w+", np.float32, (rows, dimension)
    )
    return opened


def _next_number(folder: Path) -> int:
    numbers = [
        path.name.split(".")[0].removeprefix("vectors-") for path in folder.glob("vectors-*")
    ]
    return 1 + max((int(number) for number in numbers if number.isdigit()), default=0)


def _replace(path: Path, text: str) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _stamp(folder: Path) -> tuple[int, int]:
    """Changes whenever the manifest is replaced; zeros where there is none."""
    try:
        found = (folder / MANIFEST).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
