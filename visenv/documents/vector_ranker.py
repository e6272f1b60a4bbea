"""Ranks pages by the likeness of their vectors to the query's."""

from __future__ import annotations

from collections.abc import Sequence

from visenv.documents.document import Document
from visenv.documents.embedder import Embedder, check_same_embedder, checked
from visenv.documents.page_vectors import PageVectors
from visenv.errors import DataError


class VectorRanker:
    """Orders the pages of an indexed document by late interaction, exactly.

    Args:
        vectors: What a `PageStore` sealed.
        embedder: The one that made them.

    Raises:
        ConfigurationError: If another embedder made them; says which.
    """

    def __init__(self, vectors: PageVectors, embedder: Embedder) -> None:
        seal = vectors.seal
        check_same_embedder(seal.embedder, seal.dimension, embedder, str(vectors.folder))
        self.vectors = vectors
        self.embedder = embedder

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """The best `count` distinct pages, best first; pages without vectors come last.

        Raises:
            DataError: If the document was not indexed, or with another number of pages.
        """
        indexed = self.vectors.pages(document.name)
        if indexed != len(document):
            raise DataError(
                f"{document.name!r} has {len(document)} pages but was indexed with {indexed}: "
                "ingest it again, and seal the store."
            )
        query_vectors = checked(self.embedder.embed_query(query), self.embedder)
        return self.vectors.search(document.name, query_vectors, count)
