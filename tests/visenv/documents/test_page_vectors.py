from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from visenv.documents.embedder import Vectors
from visenv.documents.page_vectors import MANIFEST, PageVectors, Seal, read_manifest, write_seal
from visenv.documents.vector_ranker import VectorRanker
from visenv.errors import ConfigurationError, DataError
from visenv.testing.documents import TextDocument, WordEmbedder

# Document a has pages of 1, 2 and 0 vectors, document b of 1.
COUNTS = {"a": [1, 2, 0], "b": [1]}
VECTORS = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]], np.float32)
QUERY = np.array([[1, 0]], np.float32)


def sealed(
    folder: Path, vectors: Vectors = VECTORS, counts: Mapping[str, Sequence[int]] = COUNTS
) -> Path:
    folder.mkdir(exist_ok=True)
    write_seal(folder, Seal("words", vectors.shape[1], counts), [(0, vectors)])
    return folder


def test_pages_in_order_worked_by_hand(tmp_path: Path) -> None:
    vectors = PageVectors(sealed(tmp_path))
    # Page 1: 1. Page 2: max(0, 0.6). Page 3 has no vector, so it is last.
    assert vectors.search("a", QUERY, 5) == [1, 2, 3]
    assert vectors.search("a", np.array([[0, 1]], np.float32), 5) == [2, 1, 3]
    assert vectors.search("a", QUERY, 1) == [1]
    assert vectors.search("b", QUERY, 5) == [1]
    assert (vectors.pages("a"), vectors.pages("b")) == (3, 1)


def test_ties_go_to_the_earlier_page(tmp_path: Path) -> None:
    same = np.array([[0, 1], [1, 0], [1, 0], [1, 0]], np.float32)
    folder = sealed(tmp_path, same, {"a": [1, 1, 1, 1]})
    assert PageVectors(folder).search("a", QUERY, 3) == [2, 3, 4]


def test_rows_may_come_in_any_order(tmp_path: Path) -> None:
    rows = [(3, VECTORS[3:]), (1, VECTORS[1:3]), (0, VECTORS[:1])]
    write_seal(tmp_path, Seal("words", 2, COUNTS), rows)
    _, array = read_manifest(tmp_path)
    assert np.array_equal(np.load(tmp_path / array), VECTORS)


def test_missing_rows_are_noticed_and_the_old_seal_stays(tmp_path: Path) -> None:
    sealed(tmp_path)
    with pytest.raises(DataError, match="was to have 4 vectors, and gave 3"):
        write_seal(tmp_path, Seal("words", 2, COUNTS), [(0, VECTORS[:3])])
    assert PageVectors(tmp_path).search("a", QUERY, 1) == [1]


def test_a_reader_that_is_open_sees_the_next_seal(tmp_path: Path) -> None:
    vectors = PageVectors(sealed(tmp_path))
    assert vectors.search("a", QUERY, 1) == [1]
    sealed(tmp_path, VECTORS[::-1].copy())  # page 1 is (0.8, 0.6), page 2 (0.6, 0.8) and (0, 1)
    assert vectors.search("a", np.array([[0, 1]], np.float32), 1) == [2]
    sealed(tmp_path, VECTORS, {"c": [4]})
    assert vectors.search("c", QUERY, 1) == [1]
    with pytest.raises(DataError, match="no document called 'a'"):
        vectors.search("a", QUERY, 1)
    assert len(list(tmp_path.glob("vectors-*"))) == 1  # the old arrays are gone


def test_a_killed_seal_leaves_the_old_one_and_is_swept_by_the_next(tmp_path: Path) -> None:
    sealed(tmp_path)
    (tmp_path / "vectors-2.npy.partial").write_bytes(b"half")
    assert PageVectors(tmp_path).search("a", QUERY, 1) == [1]
    sealed(tmp_path)
    assert [path.name for path in tmp_path.glob("vectors-*")] == ["vectors-3.npy"]


def test_no_vectors_at_all(tmp_path: Path) -> None:
    folder = sealed(tmp_path, np.empty((0, 2), np.float32), {"scan": [0, 0]})
    assert PageVectors(folder).search("scan", QUERY, 5) == [1, 2]
    assert PageVectors(sealed(tmp_path, np.empty((0, 2), np.float32), {})).seal.counts == {}


def test_an_unknown_document_names_the_nearest(tmp_path: Path) -> None:
    folder = sealed(tmp_path, VECTORS, {"annual_report": [4]})
    with pytest.raises(DataError, match=r"'anual_report'\. Did you mean 'annual_report'"):
        PageVectors(folder).search("anual_report", QUERY, 1)


def test_a_folder_that_was_never_sealed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Nothing is sealed"):
        PageVectors(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 2}', "\x00", '{"format": 1}'])
def test_a_broken_manifest_says_so(tmp_path: Path, text: str) -> None:
    sealed(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DataError, match=MANIFEST):
        PageVectors(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY"])
def test_a_broken_array_says_so(tmp_path: Path, content: bytes) -> None:
    sealed(tmp_path)
    (tmp_path / "vectors-1.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"vectors-1\.npy"):
        PageVectors(tmp_path)


def test_an_array_that_does_not_fit_the_manifest(tmp_path: Path) -> None:
    sealed(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["documents"]["b"] = [2]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"float32 \[4, 2\], the manifest says float32 \[5, 2\]"):
        PageVectors(tmp_path)


def test_vectors_are_read_only_and_mapped(tmp_path: Path) -> None:
    vectors = PageVectors(sealed(tmp_path))._opened.vectors
    assert isinstance(vectors.base, np.memmap)
    assert not vectors.flags.writeable


def test_it_pickles_as_its_folder(tmp_path: Path) -> None:
    vectors = PageVectors(sealed(tmp_path, np.tile(VECTORS, (1000, 1)), {"a": [4000]}))
    pickled = pickle.dumps(vectors)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).search("a", QUERY, 1) == [1]


# --------------------------------------------------------------------------------- VectorRanker


def ranked(folder: Path, texts: list[str]) -> VectorRanker:
    embedder = WordEmbedder()
    pages = embedder.embed_pages(TextDocument("d", texts), range(1, len(texts) + 1))
    seal = Seal(embedder.name, embedder.dimension, {"d": [len(page) for page in pages]})
    write_seal(folder, seal, [(0, np.concatenate(pages))])
    return VectorRanker(PageVectors(folder), embedder)


def test_the_ranker_finds_the_page_with_the_line(tmp_path: Path) -> None:
    texts = ["red car", "some text\nblue boat\nmore", "", "green bike"]
    ranker = ranked(tmp_path, texts)
    assert ranker.rank(TextDocument("d", texts), "blue boat", 4)[0] == 2
    assert ranker.rank(TextDocument("d", texts), "bike green", 4)[0] == 4
    assert ranker.rank(TextDocument("d", texts), "red", 4)[-1] == 3  # nothing on it to find


@pytest.mark.parametrize(
    "embedder", [WordEmbedder("others"), WordEmbedder(dimension=32)], ids=["name", "dimension"]
)
def test_another_embedder_is_refused_by_name_and_dimension(
    tmp_path: Path, embedder: WordEmbedder
) -> None:
    vectors = ranked(tmp_path, ["a"]).vectors
    with pytest.raises(ConfigurationError, match=r"'words' \(dimension 64\), not by") as caught:
        VectorRanker(vectors, embedder)
    assert f"{embedder.name!r} (dimension {embedder.dimension})" in str(caught.value)


def test_a_document_that_has_changed_is_refused(tmp_path: Path) -> None:
    ranker = ranked(tmp_path, ["a", "b"])
    with pytest.raises(DataError, match="'d' has 3 pages but was indexed with 2"):
        ranker.rank(TextDocument("d", ["a", "b", "c"]), "a", 1)


def test_a_ranker_pickles(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(ranked(tmp_path, ["red", "blue"])))
    assert again.rank(TextDocument("d", ["red", "blue"]), "blue", 1) == [2]
