from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text_documents import TextDocument, WordEmbedder
from visenv.documents.embedders import max_sim
from visenv.retrieval.vectors import checked


def test_late_interaction_worked_by_hand() -> None:
    # Page 1 has the vectors (1, 0) and (0, 1), page 2 has (0.6, 0.8), page 3 has none. The query
    # has (1, 0) and (0.8, 0.6), so page 1 scores max(1, 0) + max(0.8, 0.6) = 1.8, and page 2 scores
    # 0.6 + (0.48 + 0.48) = 1.56.
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    query = np.array([[1, 0], [0.8, 0.6]], np.float32)
    scores = max_sim(vectors, [2, 1, 0], query)
    assert scores.tolist() == pytest.approx([1.8, 1.56, -np.inf])


def test_max_sim_without_vectors() -> None:
    nothing = np.empty((0, 2), np.float32)
    assert max_sim(nothing, [0, 0], np.ones((1, 2), np.float32)).tolist() == [-np.inf, -np.inf]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(1, 4), st.integers(0, 99))
def test_max_sim_is_the_sum_of_best_matches(counts: list[int], asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((sum(counts), 6)).astype(np.float32)
    query = rng.standard_normal((asked, 6)).astype(np.float32)
    scores = max_sim(vectors, counts, query)
    start = 0
    for score, count in zip(scores, counts, strict=True):
        page = vectors[start : start + count]
        start += count
        expected = sum(max(float(q @ v) for v in page) for q in query) if count else -np.inf
        assert score == pytest.approx(expected, abs=1e-4)


def test_embedder_without_weights_keeps_the_contract() -> None:
    embedder = WordEmbedder()
    pages = embedder.embed_pages(TextDocument("d", ["red car\nblue boat", "", "\n?\n"]), [1, 2, 3])
    assert [page.shape for page in pages] == [(2, 64), (0, 64), (0, 64)]
    for vectors in (*pages, embedder.embed_query("red"), embedder.embed_query("")):
        checked(vectors, embedder)
