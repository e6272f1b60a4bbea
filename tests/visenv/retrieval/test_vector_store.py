"""Tests the store on real Chroma: stored vectors, missing ones, and seals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text_documents import WordEmbedder
from visenv.errors import ConfigurationError, DataError
from visenv.retrieval.vector_store import FOLDER, VectorItem, VectorStore
from visenv.retrieval.vectors import Vectors, checked

pytestmark = pytest.mark.component("chromadb")

MAKER = WordEmbedder(dimension=4)


def unit(*seeds: int) -> Vectors:
    """Return one vector of unit length for each seed."""
    made = [np.random.default_rng(seed).standard_normal(4) for seed in seeds]
    rows = [vector / np.linalg.norm(vector) for vector in made]
    return np.array(rows, np.float32).reshape(len(seeds), 4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    opened = VectorStore(tmp_path / "store", MAKER)
    yield opened
    opened.close()


def sealed_rows(store: VectorStore, name: str, keys: list[str]) -> Vectors:
    group = store.seal({name: keys}).group(name)
    assert group is not None
    return group.vectors


def test_items_are_counted_and_sealed_in_the_order_asked_for(store: VectorStore) -> None:
    store.put(
        [VectorItem("one", unit(1)), VectorItem("none", unit()), VectorItem("three", unit(2, 3, 4))]
    )
    assert store.counts(["three", "absent", "one", "none", "one"]) == {
        "three": 3, "one": 1, "none": 0,
    }  # fmt: skip
    sealed = store.seal({"b": ["three", "none"], "a": ["one", "one"]})
    assert sealed.seal.groups == {"b": [3, 0], "a": [1, 1]}
    group = sealed.group("b")
    assert group is not None
    assert np.array_equal(group.vectors, unit(2, 3, 4))
    group = sealed.group("a")
    assert group is not None
    assert np.array_equal(group.vectors, unit(1, 1))


def test_item_that_is_put_again_is_replaced(store: VectorStore) -> None:
    for seeds in ((1, 2, 3), (4,), (), (5, 6)):  # fewer and more vectors than before
        store.put([VectorItem("key", unit(*seeds))])
        assert store.counts(["key"]) == {"key": len(seeds)}
        assert np.array_equal(sealed_rows(store, "g", ["key"]), unit(*seeds))


def test_facts_are_read_back_and_items_are_removed_by_them(store: VectorStore) -> None:
    store.put(
        [VectorItem("a", unit(1, 2), {"of": "x", "page": 1}), VectorItem("b", unit(), {"of": "y"})]
    )
    assert {key: facts["of"] for key, facts in store.facts().items()} == {"a": "x", "b": "y"}
    store.remove(of="x")
    assert store.counts(["a", "b"]) == {"b": 0}
    assert list(store.facts()) == ["b"]


def test_item_of_which_a_row_is_missing_is_not_there(store: VectorStore) -> None:
    store.put([VectorItem(key, unit(1, 2, 3)) for key in ("first", "last", "whole")])
    store._collection.delete(ids=["first/0", "last/2"])
    assert store.counts(["first", "last", "whole"]) == {"whole": 3}
    assert list(store.facts()) == ["whole"]
    with pytest.raises(DataError, match="has no vectors of the item 'last'"):
        store.seal({"g": ["whole", "last"]})


def test_seal_is_written_again_only_when_something_changed(store: VectorStore) -> None:
    store.put([VectorItem("a", unit(1)), VectorItem("b", unit(2))])
    layout = {"g": ["a", "b"]}
    assert store.stale(layout)
    before = store.seal(layout)._opened.stamp
    store.put([])
    assert not store.stale(layout)
    assert store.seal(layout)._opened.stamp == before
    assert store.stale({"g": ["b", "a"]})  # the same counts in another order
    store.put([VectorItem("b", unit(3))])
    assert np.array_equal(sealed_rows(store, "g", ["a", "b"]), unit(1, 3))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text("ab/é", min_size=1, max_size=4), st.integers(0, 3), max_size=6))
def test_stored_vectors_are_there_after_opening_again(
    tmp_path_factory: pytest.TempPathFactory, sizes: dict[str, int]
) -> None:
    """Check stored vectors; keys may contain the separator of a key and the number of a row."""
    folder = tmp_path_factory.mktemp("store")
    vectors = {
        key: unit(*range(10 * number, 10 * number + size))
        for number, (key, size) in enumerate(sizes.items())
    }
    with VectorStore(folder, MAKER) as store:
        store.put([VectorItem(key, made) for key, made in vectors.items()])
    with VectorStore(folder, MAKER) as store:
        assert store.counts(sizes) == sizes
        assert set(store.facts()) == set(sizes)
        expected = np.concatenate([unit(), *vectors.values()])
        assert np.array_equal(sealed_rows(store, "g", list(sizes)), expected)


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones((2, 4), np.float32),  # not unit length
        np.zeros((1, 4), np.float32),
        np.full((1, 4), np.nan, np.float32),
        np.eye(4, dtype=np.float64),
        np.eye(3, dtype=np.float32),
        np.eye(4, dtype=np.float32)[0],
    ],
)
def test_vectors_that_break_the_promise_of_an_embedder_are_refused(vectors: Vectors) -> None:
    with pytest.raises(ConfigurationError, match=r"'words' must give float32 \[vectors, 4\]"):
        checked(vectors, MAKER)


def test_store_is_unchanged_if_one_item_is_refused(store: VectorStore) -> None:
    with pytest.raises(ConfigurationError, match="of unit length"):
        store.put([VectorItem("good", unit(1)), VectorItem("bad", 2 * unit(1))])
    assert store.counts(["good"]) == {}


def test_damaged_store_is_named(tmp_path: Path) -> None:
    VectorStore(tmp_path, MAKER).close()
    (tmp_path / FOLDER / "chroma.sqlite3").write_bytes(bytes(9999))
    with pytest.raises(DataError, match=r"chroma is damaged.*Delete it"):
        VectorStore(tmp_path, MAKER)


def test_lock_is_free_again_after_the_writer_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom visenv.retrieval.vector_store import VectorStore\n"
        "from tests.text_documents import WordEmbedder\n"
        "store = VectorStore(sys.argv[1], WordEmbedder(dimension=4))\n"
        "print(os.getpid(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9
    assert (tmp_path / "writer.pid").read_text() == done.stdout.strip()
    VectorStore(tmp_path, MAKER).close()


def test_manifest_of_an_older_version_is_replaced(store: VectorStore) -> None:
    store.put([VectorItem("a", unit(1))])
    store.seal({"g": ["a"]})
    manifest = store.folder / "sealed.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 1}))
    assert store.stale({"g": ["a"]})
    assert np.array_equal(sealed_rows(store, "g", ["a"]), unit(1))
