"""Tests the ranking of pages by their vectors: by hand, and with an embedder of words."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.text_documents import TextDocument, WordEmbedder
from visenv.documents.document import Document
from visenv.documents.rankers import VectorRanker
from visenv.errors import ConfigurationError, DataError
from visenv.retrieval.sealed_vectors import SealedVectors, StoreSeal, write_seal
from visenv.retrieval.vectors import Vectors


class Fixed:
    """Embeds a query by reading two numbers from its text."""

    name = "fixed"
    dimension = 2

    def embed_query(self, text: str) -> Vectors:
        return np.array([[float(number) for number in text.split()]], np.float32)

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        raise NotImplementedError


def fixed(folder: Path, vectors: list[list[float]], groups: dict[str, list[int]]) -> VectorRanker:
    rows = np.array(vectors, np.float32).reshape(-1, 2)
    write_seal(folder, StoreSeal("fixed", 2, groups, "layout"), [rows])
    return VectorRanker(SealedVectors(folder), Fixed())


def pages(name: str, number: int) -> TextDocument:
    return TextDocument(name, [""] * number)


def test_pages_in_order_worked_by_hand(tmp_path: Path) -> None:
    """Check the order of pages; document a has pages of 1, 2 and 0 vectors, document b of 1."""
    vectors: list[list[float]] = [[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]]
    ranker = fixed(tmp_path, vectors, {"a": [1, 2, 0], "b": [1]})
    # Page 1: 1. Page 2: max(0, 0.6). Page 3 has no vector, so it is never found.
    assert ranker.rank(pages("a", 3), "1 0", 5) == [1, 2]
    assert ranker.rank(pages("a", 3), "0 1", 5) == [2, 1]
    assert ranker.rank(pages("a", 3), "1 0", 1) == [1]
    assert ranker.rank(pages("b", 1), "1 0", 5) == [1]


def test_ties_go_to_the_earlier_page(tmp_path: Path) -> None:
    ranker = fixed(tmp_path, [[0, 1], [1, 0], [1, 0], [1, 0]], {"a": [1, 1, 1, 1]})
    assert ranker.rank(pages("a", 4), "1 0", 3) == [2, 3, 4]


def test_pages_without_vectors_are_not_found(tmp_path: Path) -> None:
    assert fixed(tmp_path, [], {"scan": [0, 0]}).rank(pages("scan", 2), "1 0", 5) == []


def test_unknown_document_names_the_nearest(tmp_path: Path) -> None:
    ranker = fixed(tmp_path, [[1, 0]], {"annual_report": [1]})
    with pytest.raises(DataError, match=r"'anual_report'\. Did you mean 'annual_report'"):
        ranker.rank(pages("anual_report", 1), "1 0", 1)


def ranked(folder: Path, texts: list[str]) -> VectorRanker:
    embedder = WordEmbedder()
    vectors = embedder.embed_pages(TextDocument("d", texts), range(1, len(texts) + 1))
    seal = StoreSeal(
        embedder.name, embedder.dimension, {"d": [len(page) for page in vectors]}, "layout"
    )
    write_seal(folder, seal, vectors)
    return VectorRanker(SealedVectors(folder), embedder)


def test_ranker_finds_the_page_with_the_line(tmp_path: Path) -> None:
    texts = ["red car", "some text\nblue boat\nmore", "", "green bike"]
    ranker = ranked(tmp_path, texts)
    assert ranker.rank(TextDocument("d", texts), "blue boat", 4)[0] == 2
    assert ranker.rank(TextDocument("d", texts), "bike green", 4)[0] == 4
    assert 3 not in ranker.rank(TextDocument("d", texts), "red", 4)  # page 3 has no text


@pytest.mark.parametrize(
    "embedder", [WordEmbedder("others"), WordEmbedder(dimension=32)], ids=["name", "dimension"]
)
def test_embedder_of_another_name_or_dimension_is_refused(
    tmp_path: Path, embedder: WordEmbedder
) -> None:
    vectors = ranked(tmp_path, ["a"]).vectors
    with pytest.raises(ConfigurationError, match=r"'words' \(dimension 64\), not by") as caught:
        VectorRanker(vectors, embedder)
    assert f"{embedder.name!r} (dimension {embedder.dimension})" in str(caught.value)


def test_document_that_has_changed_is_refused(tmp_path: Path) -> None:
    ranker = ranked(tmp_path, ["a", "b"])
    with pytest.raises(DataError, match="'d' has 3 pages but was indexed with 2"):
        ranker.rank(TextDocument("d", ["a", "b", "c"]), "a", 1)


def test_ranker_pickles(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(ranked(tmp_path, ["red", "blue"])))
    assert again.rank(TextDocument("d", ["red", "blue"]), "blue", 1) == [2]
