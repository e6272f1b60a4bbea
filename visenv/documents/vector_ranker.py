"""Ranks pages by the similarity of their vectors and the vectors of the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.documents.document import Document
from visenv.documents.embedder import Embedder, max_sim
from visenv.documents.names import unknown_document
from visenv.errors import DataError
from visenv.retrieval.sealed_vectors import SealedVectors
from visenv.retrieval.vectors import check_same_embedder, checked


class VectorRanker:
    """Ranks the pages of an indexed document by exact late interaction (`max_sim`).

    Args:
        vectors: The vectors that a `PageStore` sealed.
        embedder: The embedder that made them.

    Raises:
        ConfigurationError: If another embedder made the vectors; the message names it.
    """

    def __init__(self, vectors: SealedVectors, embedder: Embedder) -> None:
        seal = vectors.seal
        check_same_embedder(seal.embedder, seal.dimension, embedder, str(vectors.folder))
        self.vectors = vectors
        self.embedder = embedder

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """Return the best `count` pages, best first; ties go to the earlier page.

        Pages without vectors are omitted.

        Raises:
            DataError: If the document was not indexed, or was indexed with another number of pages.
        """
        group = self.vectors.group(document.name)
        if group is None:
            unknown = unknown_document(document.name, self.vectors.seal.groups)
            raise DataError(f"{unknown} {self.vectors.folder} holds only sealed documents.")
        if len(group.counts) != len(document):
            raise DataError(
                f"{document.name!r} has {len(document)} pages but was indexed with "
                f"{len(group.counts)}: ingest it again, and seal the store."
            )
        query_vectors = checked(self.embedder.embed_query(query), self.embedder)
        scores = max_sim(group.vectors, group.counts, query_vectors)
        best = np.argsort(-scores, kind="stable")[:count]
        return [int(page) + 1 for page in best if np.isfinite(scores[page])]
