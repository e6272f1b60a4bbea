"""Ranks the pages of a document by BM25 over their text layers, which needs no weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from visenv.cache import SharedCache
from visenv.documents.document import Document
from visenv.errors import DataError
from visenv.retrieval.bm25 import Bm25, PostingsTable
from visenv.text.words import search_words

_logger = logging.getLogger(__name__)


class Bm25Ranker:
    """Ranks the pages of a document by BM25 (`visenv.retrieval.bm25.Bm25`) over their words.

    Words are those of `visenv.text.words.search_words`: runs of letters, digits and underscores,
    compared without case, and pairs of characters in scripts without blanks. Pages without any word
    of the query are omitted; of pages with equal scores, the earlier one comes first.

    On pages of technical documents, BM25 found more pages than a small sentence encoder, so that it
    is the default ranker.

    Args:
        k1: How slowly the weight of repeated words saturates.
        b: How strongly the scores of long pages are reduced, 0 to 1.
        entries: Maximum number of (word, page) pairs in memory, of the documents used last; about
            100 bytes each.
    """

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, entries: int = 400_000) -> None:
        self.k1 = k1
        self.b = b
        # The key is the id of a document, which is only valid while the document exists. The value
        # therefore contains the document.
        self._known: SharedCache[int, tuple[Document, PostingsTable]] = SharedCache(
            entries, _entries
        )

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """Return the best `count` pages with a word of the query, best first.

        A page whose text cannot be read counts as a page without text, and is logged.

        Raises:
            DataError: If the document cannot be opened.
        """
        _, postings = self._known.get(id(document), partial(self._read, document))
        best = Bm25(len(document), postings.get).best(words(query), count)
        return [page + 1 for page in best]

    def _read(self, document: Document) -> tuple[Document, PostingsTable]:
        texts = [_text(document, page) for page in range(1, len(document) + 1)]
        return document, PostingsTable([words(text) for text in texts], self.k1, self.b)


words = search_words
"""Returns the words of a text, case folded."""


def _text(document: Document, page: int) -> str:
    """Return the text of a page; a page that cannot be read must not make the search fail."""
    try:
        return document.page_text(page)
    except DataError as error:
        _logger.warning("Page %d of %r is not searched: %s", page, document.name, error)
        return ""


def _entries(known: tuple[Document, PostingsTable]) -> int:
    return 1 + len(known[1])  # a document without text takes memory, too
