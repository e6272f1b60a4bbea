"""BM25 over the text layers of one document's pages: the ranking that needs no weights."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.documents.cache import LruCache
from visenv.documents.document import Document

_WORD = re.compile(r"\w+")


class Posting(NamedTuple):
    """The pages a word is on (indices from 0), and what a match of it adds to each."""

    pages: NDArray[np.intp]
    weights: NDArray[np.float64]


class PageStatistics(NamedTuple):
    """What BM25 needs of a document."""

    pages: int
    postings: dict[str, Posting]
    entries: int


class Bm25Ranker:
    """Ranks the pages of a document by BM25 between the query's words and each page's.

    A word `w` of the query adds to a page `p`, with `n` pages of which `n_w` have the word, `f` its
    count on the page, `l` the page's length in words and `m` the mean length::

        log(1 + (n - n_w + 1/2) / (n_w + 1/2)) * f (k1 + 1) / (f + k1 (1 - b + b l / m))

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq.
    3.15, with Lucene's logarithm, which is never negative. Words are runs of letters, digits and
    underscores, in any case. Pages without any of the words are no hits and are left out; ties go
    to the earlier page.

    Args:
        k1: How slowly repetitions of a word stop counting.
        b: How much long pages are held back, 0 to 1.
        entries: Most (word, page) pairs of statistics kept, of the documents used last.
    """

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, entries: int = 2_000_000) -> None:
        self.k1 = k1
        self.b = b
        # A key is an id, valid as long as its document lives: so the document is kept beside it.
        self._kept: LruCache[int, tuple[Document, PageStatistics]] = LruCache(entries, _entries)

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """The best `count` pages that have a word of the query, best first.

        Raises:
            DataError: If the text of a page cannot be read.
        """
        statistics = self._kept.get(id(document), partial(self._read, document))[1]
        scores = np.zeros(statistics.pages)
        for word in words(query):
            if word in statistics.postings:
                pages, weights = statistics.postings[word]
                scores[pages] += weights
        order = np.argsort(-scores, kind="stable")[:count]
        return [int(page) + 1 for page in order if scores[page] > 0]

    def _read(self, document: Document) -> tuple[Document, PageStatistics]:
        counts = [Counter(words(document.page_text(page + 1))) for page in range(len(document))]
        lengths = np.array([page.total() for page in counts], np.float64)
        relative = lengths / (lengths.mean() or 1)
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for page, on_page in enumerate(counts):
            for word, times in on_page.items():
                found[word].append((page, times))
        postings = {word: self._posting(pairs, relative) for word, pairs in found.items()}
        return document, PageStatistics(len(counts), postings, sum(map(len, counts)))

    def _posting(self, pairs: list[tuple[int, int]], relative: NDArray[np.float64]) -> Posting:
        total, having = len(relative), len(pairs)
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        pages = np.array([page for page, _ in pairs])
        times = np.array([times for _, times in pairs], np.float64)
        damped = times + self.k1 * (1 - self.b + self.b * relative[pages])
        return Posting(pages, rarity * times * (self.k1 + 1) / damped)


def words(text: str) -> list[str]:
    """The words of a text, case folded."""
    return _WORD.findall(text.casefold())


def _entries(kept: tuple[Document, PageStatistics]) -> int:
    return kept[1].entries + 1  # a scan without text is an entry too
