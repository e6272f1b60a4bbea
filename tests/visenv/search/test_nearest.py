"""Tests that the nearest vectors equal those of a full comparison, despite rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.retrieval.vectors import Vectors
from visenv.search.meaning import NearestVectors

pytestmark = pytest.mark.component("torch")


def unit(vectors: Vectors) -> Vectors:
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def compared(vectors: Vectors, query: Vectors, count: int) -> list[int]:
    """Compare all vectors in double precision, and rank the scores in single precision."""
    scores = (vectors.astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
    return [int(row) for row in np.argsort(-scores, kind="stable")[:count]]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    number=st.integers(1, 400),
    count=st.integers(1, 500),
    near=st.sampled_from([1.0, 1e-2, 1e-4]),
)
def test_nearest_vectors_are_those_of_comparing_all(
    seed: int, number: int, count: int, near: float
) -> None:
    """Check vectors that may be so close to each other that half precision cannot separate them."""
    rng = np.random.default_rng(seed)
    middle = unit(rng.standard_normal(64, np.float32))
    vectors = unit(middle + near * unit(rng.standard_normal((number, 64), np.float32)))
    query = unit(middle + near * unit(rng.standard_normal(64, np.float32)))
    assert NearestVectors(vectors).find(query, count) == compared(vectors, query, count)


def test_ties_go_by_number() -> None:
    rng = np.random.default_rng(0)
    few = unit(rng.standard_normal((3, 32), np.float32))
    vectors = few[[1, 0, 2, 0, 1, 0]]
    assert NearestVectors(vectors).find(few[0], 3) == [1, 3, 5]
    assert NearestVectors(vectors).find(few[1], 2) == [0, 4]


def test_search_in_half_precision_alone_would_be_wrong() -> None:
    """Check two vectors that are equal in half precision; the second is slightly nearer."""
    query = np.array([1, 0], np.float32)
    angles = np.array([0.0103, 0.01], np.float32)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert len(set(vectors[:, 0].astype(np.float16))) == 1
    assert NearestVectors(vectors).find(query, 1) == [1]
