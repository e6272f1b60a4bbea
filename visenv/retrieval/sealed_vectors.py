"""Provides vectors for readers: all vectors of a store in one memory-mapped array, by group.

`visenv.retrieval.vector_store.VectorStore.seal` writes the array. Readers use nothing else, so that
they need neither a lock nor Chroma. Forked, spawned and pickled readers behave alike, and reading
the vectors of one document reads only these, whatever the size of the store.

A folder contains ``sealed.json`` (the embedder, the groups, the name of the array) and the array,
which has a new name each time. The array is complete before ``sealed.json`` is replaced with one
that names it, so that a reader sees either the old seal or the new one, and never a mixture.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.decoding.files import read_regular, regular_state
from visenv.decoding.json_text import read_json_file
from visenv.errors import DataError
from visenv.files import file_inside, replacing
from visenv.retrieval.vectors import Vectors

MANIFEST = "sealed.json"
_FORMAT = 2


class StoreSeal(NamedTuple):
    """Describes the last seal of a folder.

    Attributes:
        embedder: Name of the embedder.
        dimension: Length of the vectors.
        groups: The number of vectors of each item, by the name of the group.
        layout: Hash of the keys of the items, in their order.
    """

    embedder: str
    dimension: int
    groups: Mapping[str, Sequence[int]]
    layout: str

    @property
    def rows(self) -> int:
        """Return the number of vectors."""
        return sum(map(sum, self.groups.values()))


class VectorGroup(NamedTuple):
    """Holds the vectors of a group of items: the pages of a document, or the texts of a corpus.

    Attributes:
        vectors: Vectors of all items, in item order, ``[sum(counts), dimension]``.
        counts: Number of vectors of each item.
    """

    vectors: Vectors
    counts: Sequence[int]


class _Opened(NamedTuple):
    seal: StoreSeal
    starts: dict[str, int]
    vectors: Vectors
    stamp: tuple[int, int]


class SealedVectors:
    """Reads the sealed vectors of a folder.

    Any number of processes and threads may share it. It is pickled as the path of its folder. A
    newer seal is opened when a group is requested the next time.

    Args:
        folder: Folder that a `VectorStore` sealed.

    Raises:
        DataError: If the folder has no seal, or the files cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._opened = self._open()

    @property
    def seal(self) -> StoreSeal:
        """Return the current seal of the folder."""
        return self._current().seal

    def group(self, name: str) -> VectorGroup | None:
        """Return the vectors of a group, or None if there is no such group."""
        opened = self._current()
        counts = opened.seal.groups.get(name)
        if counts is None:
            return None
        start = opened.starts[name]
        return VectorGroup(opened.vectors[start : start + sum(counts)], counts)

    def _current(self) -> _Opened:
        if _stamp(self.folder) != self._opened.stamp:
            self._opened = self._open()
        return self._opened

    def _open(self) -> _Opened:
        try:
            return self._open_once()
        except FileNotFoundError:
            pass  # a newer seal removed the array after the manifest was read
        try:
            return self._open_once()
        except FileNotFoundError as error:
            raise DataError(f"No vectors are sealed in {self.folder}.") from error

    def _open_once(self) -> _Opened:
        stamp = _stamp(self.folder)
        seal, array = read_manifest(self.folder)
        starts = [0, *accumulate(map(sum, seal.groups.values()))]
        regular_state(self.folder / array)
        try:
            vectors: Vectors = np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
                self.folder / array, "r"
            )
        except (ValueError, EOFError, OverflowError) as error:
            raise DataError(f"{self.folder / array} cannot be read: {error}.") from error
        if vectors.shape != (seal.rows, seal.dimension) or vectors.dtype != np.float32:
            raise DataError(
                f"{self.folder / array} holds {vectors.dtype} {list(vectors.shape)}, the manifest "
                f"says float32 {[seal.rows, seal.dimension]}: delete {MANIFEST} and seal again."
            )
        # A plain array on the same memory, because each slice of a memmap has the cost of a Python
        # object.
        begin = dict(zip(seal.groups, starts, strict=False))
        return _Opened(seal, begin, np.asarray(vectors), stamp)

    @override
    def __getstate__(self) -> dict[str, Path]:
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Path]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def read_manifest(folder: Path) -> tuple[StoreSeal, str]:
    """Return the seal of a folder, and the name of the array.

    Raises:
        FileNotFoundError: If the folder has no seal.
        DataError: If the file is not a manifest of this version.
    """
    content = read_regular(folder / MANIFEST)
    try:
        held = read_json_file(content)
        if held["format"] != _FORMAT:
            raise DataError(f"{folder / MANIFEST} has format {held['format']}, not {_FORMAT}.")
        seal = StoreSeal(held["embedder"], held["dimension"], held["groups"], held["layout"])
        _check_types(seal)
        return seal, file_inside(folder, held["array"]).relative_to(folder).as_posix()
    except (DataError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder / MANIFEST} is not a manifest: {error!r}.") from error


def _check_types(seal: Any) -> None:
    """Raise a `TypeError` if a value of a `StoreSeal`, which a file contains, has another type."""
    if not isinstance(seal.embedder, str) or not isinstance(seal.layout, str):
        raise TypeError("the embedder or the layout is no text")
    if type(seal.dimension) is not int or not isinstance(seal.groups, dict):
        raise TypeError("the dimension is no integer, or the groups are no object")
    for counts in seal.groups.values():
        if not isinstance(counts, list):
            raise TypeError("the counts of a group are no list")
        if not all(type(count) is int and count >= 0 for count in counts):
            raise TypeError("a count is no integer of at least 0")


def write_seal(folder: Path, seal: StoreSeal, blocks: Iterable[Vectors]) -> None:
    """Write a seal, put it in place, and delete the previous one.

    Args:
        folder: Folder to write to.
        seal: The content of the seal.
        blocks: All vectors in their order, in blocks.

    Raises:
        DataError: If the number of vectors in `blocks` differs from the seal.
    """
    name = f"vectors-{secrets.token_hex(8)}.npy"
    with replacing(folder / name) as partial:
        array = _new_array(partial, seal.rows, seal.dimension)
        written = 0
        for vectors in blocks:
            end = written + len(vectors)
            if end <= seal.rows:
                array[written:end] = vectors
            written = end
        if written != seal.rows:
            raise DataError(f"{folder} must have {seal.rows} vectors, got {written}.")
        array.flush()  # before the manifest names it: otherwise a power failure may leave zeros
    with replacing(folder / MANIFEST) as manifest, manifest.open("w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, "array": name, **seal._asdict()}, file)
        file.flush()
        os.fsync(file.fileno())
    for other in (
        *folder.glob("vectors-*"),
        *folder.glob(".vectors-*"),
    ):  # old, or of killed writers
        if other.name != name:
            other.unlink()


def _new_array(path: Path, rows: int, dimension: int) -> np.memmap[Any, np.dtype[np.float32]]:
    from numpy.lib import format as npy

    opened: np.memmap[Any, np.dtype[np.float32]] = npy.open_memmap(  # type: ignore[no-untyped-call]
        path, "w+", np.float32, (rows, dimension)
    )
    return opened


def _stamp(folder: Path) -> tuple[int, int]:
    """Return a value that changes when the manifest is replaced; zeros without a manifest."""
    try:
        found = (folder / MANIFEST).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
