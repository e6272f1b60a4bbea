"""Stores page vectors: embeds documents page by page, and seals the vectors for rankers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from visenv.documents.document import Document
from visenv.documents.embedder import Embedder
from visenv.errors import DataError
from visenv.retrieval.sealed_vectors import SealedVectors
from visenv.retrieval.vector_store import VectorItem, VectorStore
from visenv.retrieval.vectors import Vectors

_PAGES_AT_A_TIME = 32

_logger = logging.getLogger(__name__)


class PageStore:
    """Embeds documents page by page, and seals the vectors for readers.

    Ingesting is resumable and idempotent: after a kill, open the store again and ingest the same
    documents, and only the missing pages are embedded. A changed document must be removed first. If
    only its number of pages changed, it is embedded again automatically.

    ::

        with PageStore(folder, embedder) as store:      # seals at the end
            for name in library.names:
                store.ingest(library.document(name))
        ranker = VectorRanker(SealedVectors(folder), embedder)   # in any number of processes

    Args:
        folder: Folder of the store, which is created if it does not exist.
        embedder: The embedder of the pages. The store contains its name and dimension.

    Raises:
        ConfigurationError: As `visenv.retrieval.vector_store.VectorStore`.
        DataError: If the stored data are damaged.
    """

    def __init__(self, folder: str | Path, embedder: Embedder) -> None:
        self.folder = Path(folder)
        self.embedder = embedder
        self._store = VectorStore(folder, embedder)
        self._lengths: dict[str, int] = {}  # pages of each document
        self._stored: dict[str, set[int]] = {}  # numbers of the stored pages
        try:
            for facts in self._store.facts().values():
                self._note(facts["document"], facts["pages"], [facts["page"]])
        except BaseException:
            self._store.close()
            raise

    @property
    def documents(self) -> list[str]:
        """Return the documents whose pages are all stored, sorted."""
        return sorted(name for name, pages in self._lengths.items() if not self._missing(name))

    def ingest(self, document: Document) -> int:
        """Embed and store the pages that are not yet stored.

        A page that cannot be read or rendered is stored without vectors, and logged.

        Returns:
            Number of embedded pages.

        Raises:
            ConfigurationError: If the vectors of the embedder are invalid, or this is a forked
                child.
            DataError: If the document cannot be opened.
        """
        name, length = document.name, len(document)
        if self._lengths.get(name, length) != length:
            self.remove(name)
        self._lengths[name] = length
        missing = self._missing(name)
        for start in range(0, len(missing), _PAGES_AT_A_TIME):
            pages = missing[start : start + _PAGES_AT_A_TIME]
            vectors = self._embed(document, pages)
            self._store.put(
                [
                    VectorItem(
                        _key(name, page), each, {"document": name, "pages": length, "page": page}
                    )
                    for page, each in zip(pages, vectors, strict=True)
                ]
            )
            self._note(name, length, pages)
        return len(missing)

    def remove(self, document: str) -> None:
        """Delete the pages of a document; the sealed vectors contain them until the next `seal`."""
        self._store.remove(document=document)
        self._lengths.pop(document, None)
        self._stored.pop(document, None)

    @property
    def stale(self) -> bool:
        """Return whether the sealed vectors differ from those of the stored documents."""
        return self._store.stale(self._layout())

    def seal(self) -> SealedVectors:
        """Write the vectors of complete documents, unless the sealed ones are up to date."""
        return self._store.seal(self._layout())

    def close(self) -> None:
        """Release the store, without sealing."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self.seal()
        finally:
            self.close()

    def _embed(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        try:
            return self.embedder.embed_pages(document, pages)
        except DataError as error:
            if len(pages) > 1:  # find the page that cannot be read
                return [self._embed(document, [page])[0] for page in pages]
            _logger.warning("Page %d of %r has no vectors: %s", pages[0], document.name, error)
            return [np.empty((0, self.embedder.dimension), np.float32)]

    def _note(self, document: str, length: int, pages: Sequence[int]) -> None:
        """Record that these pages are in the store."""
        self._lengths.setdefault(document, length)
        self._stored.setdefault(document, set()).update(pages)

    def _missing(self, document: str) -> list[int]:
        stored = self._stored.get(document, set())
        return [page for page in range(1, self._lengths[document] + 1) if page not in stored]

    def _layout(self) -> dict[str, list[str]]:
        return {
            name: [_key(name, page) for page in range(1, self._lengths[name] + 1)]
            for name in self.documents
        }


def _key(document: str, page: int) -> str:
    return f"{document}/{page}"
