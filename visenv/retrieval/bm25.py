"""Implements BM25, which scores texts by the words that they share with a query.

This is the only implementation in visenv. `visenv.documents` ranks the pages of a document with it,
and `visenv.search.words` the passages of a corpus. As in bm25s (arXiv 2407.03618), the contribution
of a word to the score of a text is computed when the index is built, so that a query only adds
numbers.

The package bm25s itself is not used, for reasons that `benchmarks/bm25.py` measures
(`docs/search.md` has the results):

* It does not return the same rankings. Here a title counts twice, but does not count twice in the
length of the text; bm25s computes the length from the tokens, so that a repeated title makes a text
longer.
* Its index of a corpus is built from all tokens of the corpus in memory.
* Its index of a document of 20 pages takes two to three times as long; environments build it
whenever a document is searched for the first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer]


class Postings(NamedTuple):
    """Holds the texts that contain a word.

    Attributes:
        texts: Indices of the texts, from 0, ascending, integers ``[containing]``.
        weights: The contribution of the word to the score of each text, float32 ``[containing]``.
    """

    texts: Integers
    weights: Scores


class Bm25:
    """Ranks texts by BM25.

    A word of the query adds the following to the score of a text, where `m` of `n` texts contain
    the word, `f` is its number of occurrences in the text, and `l` is the length of the text
    divided by the mean length::

        log(1 + (n - m + 1/2) / (m + 1/2)) * f / (f + k1 (1 - b + b l))

    This is eq. 3.15 of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
    Beyond" (2009), with two changes: the logarithm of Lucene, which is never negative, and no
    constant factor ``k1 + 1``, which does not change a ranking.

    Args:
        texts: Number of texts.
        postings: Returns the postings of a word, or None if no text contains the word.
    """

    def __init__(self, texts: int, postings: Callable[[str], Postings | None]) -> None:
        self.texts = texts
        self._postings = postings

    def scores(self, words: Iterable[str]) -> Scores:
        """Return the score of each text, float32 ``[texts]``; 0 for a text without these words.

        Args:
            words: Words of the query. A word that occurs twice counts twice.
        """
        # In double precision, the sum of some weights does not depend on their order. Texts with
        # equal scores are therefore ordered by their indices, and not by rounding errors.
        scores = np.zeros(self.texts)
        for word in words:
            found = self._postings(word)
            if found is not None:
                scores[found.texts] += found.weights
        return scores.astype(np.float32)

    def best(self, words: Iterable[str], count: int) -> list[int]:
        """Return the indices of the best `count` texts with a score above 0, best first.

        Texts with equal scores are ordered by their indices.
        """
        scores = self.scores(words)
        found = np.flatnonzero(scores > 0)
        values = scores[found]
        if len(found) > count:  # sort only texts that can be among the best
            likely = values >= np.partition(values, -count)[-count]
            found, values = found[likely], values[likely]
        order = np.argsort(-values, kind="stable")[:count]
        return [int(text) for text in found[order]]


class PostingsTable:
    """Holds the postings of a few texts, in memory.

    Args:
        texts: The words of each text.
        k1: How slowly the weight of repeated words saturates.
        b: How strongly the scores of long texts are reduced, 0 to 1.
    """

    def __init__(self, texts: Sequence[Sequence[str]], k1: float, b: float) -> None:
        lengths = [len(words) for words in texts]
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__  # a new word gets the next number
        words = np.fromiter(map(self._numbers.__getitem__, chain.from_iterable(texts)), np.int64)
        # Each pair of word and text is one number, so that sorting groups the pairs by word.
        pairs = words * len(texts) + np.repeat(np.arange(len(texts)), lengths)
        pairs, counts = np.unique(pairs, return_counts=True)
        words, numbers = np.divmod(pairs, len(texts))
        holding = np.bincount(words, minlength=len(self._numbers))
        norms = length_norms(lengths, k1, b)
        weights = term_weights(counts, norms[numbers], holding[words], len(texts))
        self._all = Postings(numbers, weights)
        self._ends = np.cumsum(holding).tolist()
        self._starts = [0, *self._ends]

    def __len__(self) -> int:
        """Return the number of (word, text) pairs."""
        return len(self._all.texts)

    def get(self, word: str) -> Postings | None:
        """Return the postings of a word, or None if no text contains the word."""
        number = self._numbers.get(word)
        if number is None:
            return None
        part = slice(self._starts[number], self._ends[number])
        return Postings(self._all.texts[part], self._all.weights[part])


def length_norms(lengths: Sequence[int], k1: float, b: float) -> Scores:
    """Return ``k1 (1 - b + b l)`` of each text, where `l` is its length divided by the mean length.

    Args:
        lengths: Number of words of each text.
        k1: How slowly the weight of repeated words saturates.
        b: How strongly the scores of long texts are reduced, 0 to 1.
    """
    relative = np.asarray(lengths) / (np.mean(lengths) or 1) if lengths else np.zeros(0)
    return (k1 * (1 - b + b * relative)).astype(np.float32)


def term_weights(counts: Integers, norms: Scores, holding: int | Integers, texts: int) -> Scores:
    """Return the contributions of words to the scores of texts, by the formula of `Bm25`.

    Args:
        counts: Number of occurrences of the word in the text of each posting, ``[postings]``.
        norms: The `length_norms` of the texts of these postings, ``[postings]``.
        holding: Number of texts that contain the word: one number for all postings, or
            ``[postings]``.
        texts: Number of texts.
    """
    rarity = np.log1p((texts - holding + 0.5) / (np.asarray(holding) + 0.5)).astype(np.float32)
    times = counts.astype(np.float32)
    weights: Scores = rarity * times / (times + norms)
    return weights
