"""Defines embedders of pages and queries, and the comparison of their vectors.

A page may have one vector (CLIP) or several (passages of a page, or one per patch as in ColPali).
Storage and comparison are the same for both: the comparison is always late interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.documents.document import Document
from visenv.retrieval.vectors import VectorMaker, Vectors


class Embedder(VectorMaker, Protocol):
    """Makes vectors of pages and of queries, whose inner product is high if the two match."""

    def embed_query(self, text: str) -> Vectors:
        """Return the query's vectors, at least one, for any text of any length."""
        ...

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """Return the vectors of each page; ``[0, dimension]`` for a page without content to find.

        Raises:
            DataError: If a page cannot be read or rendered.
        """
        ...


def max_sim(vectors: Vectors, counts: Sequence[int], query: Vectors) -> NDArray[np.float32]:
    """Compute late interaction: the sum over query vectors of their best match on the page.

    ``score(page) = sum over q of max over v of q · v`` (ColBERT, arXiv 2004.12832, eq. 3). With one
    vector per page and query, this is their cosine similarity.

    Args:
        vectors: Vectors of all pages, in page order, ``[sum(counts), dimension]``.
        counts: Number of vectors of each page.
        query: Vectors of the query, ``[vectors, dimension]``.

    Returns:
        float32 ``[pages]``; ``-inf`` for a page without vectors.
    """
    scores = np.full(len(counts), -np.inf, np.float32)
    having = np.flatnonzero(counts)
    if len(having):
        each = np.asarray(counts)[having]
        starts = np.cumsum(each) - each
        # vectors @ query.T is [vectors, query vectors]; its maxima are [pages, query vectors].
        best = np.maximum.reduceat(vectors @ query.T, starts, axis=0)
        scores[having] = best.sum(axis=1)
    return scores
