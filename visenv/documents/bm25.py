"""BM25 over the text layers of one document's pages: the ranking that needs no weights."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from visenv.documents.cache import LruCache
from visenv.documents.document import Document
from visenv.errors import DataError

_logger = logging.getLogger(__name__)

_WORD = re.compile(r"\w+")


class PageWords(NamedTuple):
    """What BM25 needs of a document.

    Attributes:
        counts: The words of each page.
        lengths: How many words each page has, by the mean of all.
    """

    counts: list[Counter[str]]
    lengths: list[float]


class Bm25Ranker:
    """Ranks the pages of a document by BM25 between the query's words and each page's.

    A word of the query adds to a page, with `n` pages of which `m` have the word, `f` its count on
    the page and `l` the page's length in words by the mean length::

        log(1 + (n - m + 1/2) / (m + 1/2)) * f (k1 + 1) / (f + k1 (1 - b + b l))

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq.
    3.15, with Lucene's logarithm, which is never negative. Words are runs of letters, digits and
    underscores, in any case. Pages without any of the words are no hits and are left out; ties go
    to the earlier page.

    On pages of technical documents this found more than a small sentence encoder, so it is the
    default, not a makeshift.

    Args:
        k1: How slowly repetitions of a word stop counting.
        b: How much long pages are held back, 0 to 1.
        entries: Most (word, page) pairs kept, of the documents used last; about 100 bytes each.
    """

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, entries: int = 400_000) -> None:
        self.k1 = k1
        self.b = b
        # A key is an id, valid as long as its document lives: so the document is kept beside it.
        self._kept: LruCache[int, tuple[Document, PageWords]] = LruCache(entries, _entries)

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """The best `count` pages that have a word of the query, best first.

        A page whose text cannot be read counts as one without text, and is logged.

        Raises:
            DataError: If the document cannot be opened.
        """
        _, kept = self._kept.get(id(document), partial(_read, document))
        scores = self.scores(kept, words(query))
        hits = [page for page, score in enumerate(scores) if score > 0]
        hits.sort(key=lambda page: -scores[page])
        return [page + 1 for page in hits[:count]]

    def scores(self, document: PageWords, query: Sequence[str]) -> list[float]:
        """The score of each page."""
        scores = [0.0] * len(document.counts)
        for word in query:
            having = [page for page, counts in enumerate(document.counts) if word in counts]
            rarity = math.log(1 + (len(scores) - len(having) + 0.5) / (len(having) + 0.5))
            for page in having:
                times = document.counts[page][word]
                damped = times + self.k1 * (1 - self.b + self.b * document.lengths[page])
                scores[page] += rarity * times * (self.k1 + 1) / damped
        return scores


def page_words(texts: Sequence[str]) -> PageWords:
    """The words of each page."""
    counts = [Counter(words(text)) for text in texts]
    totals = [page.total() for page in counts]
    mean = sum(totals) / len(totals) or 1
    return PageWords(counts, [total / mean for total in totals])


def words(text: str) -> list[str]:
    """The words of a text, case folded."""
    return _WORD.findall(text.casefold())


def _read(document: Document) -> tuple[Document, PageWords]:
    texts = [_text(document, page) for page in range(1, len(document) + 1)]
    return document, page_words(texts)


def _text(document: Document, page: int) -> str:
    """The page's text; a page that cannot be read must not keep the others from being found."""
    try:
        return document.page_text(page)
    except DataError as error:
        _logger.warning("Page %d of %r is not searched: %s", page, document.name, error)
        return ""


def _entries(kept: tuple[Document, PageWords]) -> int:
    return 1 + sum(map(len, kept[1].counts))  # a scan without text is an entry too
