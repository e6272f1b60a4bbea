"""Ranks pages by their vectors, and opens rankers and embedders by name.

The names are those of `gym.make` and of the command line. A `PageStore` embeds documents page by
page, and seals the vectors for rankers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import Document, PageRanker, unknown_document
from visenv.documents.embedders import ClipEmbedder, Embedder, TextEmbedder, max_sim
from visenv.errors import DataError, UnknownNameError
from visenv.retrieval.sealed_vectors import SealedVectors
from visenv.retrieval.vector_store import VectorItem, VectorStore
from visenv.retrieval.vectors import Vectors, check_same_embedder, checked, chosen_model, read_place
from visenv.scorers.backends.encoder import CLIP_MODEL, PACKAGED_MODEL

EMBEDDERS = ("text", "clip")
"""Kinds of embedders."""

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


def open_embedder(kind: str, model: str | None = None, device: str = "cpu") -> Embedder:
    """Return an embedder by kind.

    Args:
        kind: ``"text"`` (a sentence encoder over text layers) or ``"clip"`` (over page images).
        model: The weights of the model: a hub name or a folder. The defaults are
            all-MiniLM-L6-v2, from an installed package, and clip-ViT-B-32.
        device: PyTorch device.

    Raises:
        UnknownNameError: If there is no such kind.
        ConfigurationError: If the default text model is not installed.
    """
    if kind not in EMBEDDERS:
        raise UnknownNameError("embedder", kind, EMBEDDERS)
    if kind == "clip":
        return ClipEmbedder(model or CLIP_MODEL, device=device)
    return TextEmbedder(None if model == PACKAGED_MODEL else model, device=device)


def open_ranker(text: str) -> PageRanker:
    """Return a ranker by name.

    Args:
        text: ``"bm25"``, or ``"text:<index>"`` or ``"clip:<index>"`` with the folder of an index
            that ``visenv index`` made. For an index of a model other than the default of its kind,
            the model follows: ``"text:<index>?model=<model>"``.

    Raises:
        UnknownNameError: If there is no such ranker.
        ConfigurationError: If the name contains no index, or not the model of the index.
        DataError: If the folder contains no finished index.
    """
    kind, _, place = text.partition(":")
    if text == "bm25":
        return Bm25Ranker()
    if kind not in EMBEDDERS:
        raise UnknownNameError("ranker", kind, ("bm25", *EMBEDDERS))
    index, model = read_place(place, f"{kind}:<index>")
    vectors = SealedVectors(Path(index))
    made_by = vectors.seal.embedder
    return VectorRanker(vectors, open_embedder(kind, chosen_model(made_by, model, text)))
