"""Tests seals: their content, and that readers see whole, read-only and newest ones."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from visenv.errors import DataError
from visenv.retrieval.sealed_vectors import (
    MANIFEST,
    SealedVectors,
    StoreSeal,
    read_manifest,
    write_seal,
)
from visenv.retrieval.vectors import Vectors

# Group a has items of 1, 2 and 0 vectors, group b an item of 1.
GROUPS = {"a": [1, 2, 0], "b": [1]}
VECTORS = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]], np.float32)


def sealed(
    folder: Path, vectors: Vectors = VECTORS, groups: Mapping[str, Sequence[int]] = GROUPS
) -> Path:
    folder.mkdir(exist_ok=True)
    write_seal(folder, StoreSeal("words", vectors.shape[1], groups, "layout"), [vectors])
    return folder


def held(vectors: SealedVectors, name: str) -> list[list[float]]:
    group = vectors.group(name)
    assert group is not None
    return [list(map(float, vector)) for vector in group.vectors]


def test_group_has_its_own_vectors_and_counts(tmp_path: Path) -> None:
    vectors = SealedVectors(sealed(tmp_path))
    for name, rows in (("a", VECTORS[:3]), ("b", VECTORS[3:])):
        group = vectors.group(name)
        assert group is not None
        assert np.array_equal(group.vectors, rows)
        assert list(group.counts) == GROUPS[name]
    assert vectors.group("c") is None
    assert vectors.seal == StoreSeal("words", 2, GROUPS, "layout")
    assert vectors.seal.rows == 4


def test_vectors_may_come_in_several_blocks(tmp_path: Path) -> None:
    write_seal(
        tmp_path, StoreSeal("words", 2, GROUPS, "layout"), [VECTORS[:1], VECTORS[1:1], VECTORS[1:]]
    )
    _, array = read_manifest(tmp_path)
    assert np.array_equal(np.load(tmp_path / array), VECTORS)


@pytest.mark.parametrize("rows", [3, 5])
def test_seal_refuses_a_number_of_vectors_that_differs_and_keeps_the_old_one(
    tmp_path: Path, rows: int
) -> None:
    sealed(tmp_path)
    given = np.tile(VECTORS[::-1], (2, 1))[:rows]
    with pytest.raises(DataError, match=f"must have 4 vectors, got {rows}"):
        write_seal(tmp_path, StoreSeal("words", 2, GROUPS, "layout"), [given])
    assert held(SealedVectors(tmp_path), "a")[0] == [1, 0]


def test_reader_that_is_open_sees_the_next_seal(tmp_path: Path) -> None:
    vectors = SealedVectors(sealed(tmp_path))
    assert held(vectors, "b") == [list(map(float, VECTORS[3]))]
    sealed(tmp_path, VECTORS[::-1].copy())
    assert held(vectors, "b") == [[1, 0]]
    sealed(tmp_path, VECTORS, {"c": [4]})
    assert len(held(vectors, "c")) == 4
    assert vectors.group("a") is None
    assert len(list(tmp_path.glob("vectors-*"))) == 1  # the old arrays are gone


def test_killed_seal_leaves_the_old_one_and_is_removed_by_the_next(tmp_path: Path) -> None:
    sealed(tmp_path)
    for name in (".vectors-0123.npy.99", "vectors-0123.npy"):  # killed before or after the rename
        (tmp_path / name).write_bytes(b"half")
    assert len(held(SealedVectors(tmp_path), "a")) == 3
    sealed(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {MANIFEST, read_manifest(tmp_path)[1]}


def test_groups_may_have_no_vectors(tmp_path: Path) -> None:
    nothing = np.empty((0, 2), np.float32)
    assert held(SealedVectors(sealed(tmp_path, nothing, {"scan": [0, 0]})), "scan") == []
    assert SealedVectors(sealed(tmp_path, nothing, {})).seal.groups == {}


def test_folder_that_was_never_sealed_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No vectors are sealed in"):
        SealedVectors(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 1}', "\x00", '{"format": 2}'])
def test_broken_manifest_is_named(tmp_path: Path, text: str) -> None:
    sealed(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DataError, match=MANIFEST):
        SealedVectors(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY"])
def test_broken_array_is_named(tmp_path: Path, content: bytes) -> None:
    sealed(tmp_path)
    (tmp_path / read_manifest(tmp_path)[1]).write_bytes(content)
    with pytest.raises(DataError, match=r"vectors-\w+\.npy cannot be read"):
        SealedVectors(tmp_path)


def test_array_that_does_not_fit_the_manifest_is_refused(tmp_path: Path) -> None:
    sealed(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["groups"]["b"] = [2]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"float32 \[4, 2\], the manifest says float32 \[5, 2\]"):
        SealedVectors(tmp_path)


def test_vectors_are_read_only_and_mapped(tmp_path: Path) -> None:
    vectors = SealedVectors(sealed(tmp_path))._opened.vectors
    assert isinstance(vectors.base, np.memmap)
    assert not vectors.flags.writeable


def test_sealed_vectors_pickle_as_their_folder(tmp_path: Path) -> None:
    vectors = SealedVectors(sealed(tmp_path, np.tile(VECTORS, (1000, 1)), {"a": [4000]}))
    pickled = pickle.dumps(vectors)
    assert len(pickled) < 1000
    assert len(held(pickle.loads(pickled), "a")) == 4000


@pytest.mark.attack("decoders: only regular files of a limited size are opened")
def test_array_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    _, array = read_manifest(sealed(tmp_path))
    (tmp_path / array).unlink()
    os.mkfifo(tmp_path / array)
    with pytest.raises(DataError, match="is not a regular file but a named pipe"):
        SealedVectors(tmp_path)


@pytest.mark.attack("decoders: only regular files of a limited size are opened")
def test_array_that_is_an_archive_is_refused(tmp_path: Path) -> None:
    _, array = read_manifest(sealed(tmp_path))
    with (tmp_path / array).open("wb") as file:
        np.savez(file, VECTORS)
    with pytest.raises(DataError, match="cannot be read"):
        SealedVectors(tmp_path)


@pytest.mark.attack("files: an index or a model folder runs no code")
@pytest.mark.parametrize(
    "change",
    [
        *({"groups": groups} for groups in (None, ["a"], {"a": None}, {"a": "x"}, {"a": [-1, 5]})),
        *({"groups": {"a": [count]}} for count in (1.0, True, "1", 10**30)),
        *({"dimension": value} for value in (None, "2", 2.0, True)),
        *({"array": value} for value in (None, 5, "../v.npy", "/etc/passwd", "", ".", "v\0")),
        *({"embedder": 5}, {"layout": None}, {"format": [2]}),
    ],
    ids=str,
)
def test_manifest_with_other_values_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    manifest = sealed(tmp_path) / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(DataError):
        SealedVectors(tmp_path)
