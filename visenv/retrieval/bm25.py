"""BM25, which scores texts by the words that they share with a query.

This is the only implementation in visenv. `visenv.documents` ranks the pages of a document with it
and `visenv.search.words` the passages of a corpus. As in bm25s (arXiv 2407.03618), what a word adds
to the score of a text is computed when the index is built, so that a query only adds numbers up.

The package bm25s itself is not used, for reasons that `benchmarks/bm25.py` measures
(`docs/search.md` has the figures):

* It does not return the same rankings. A title counts twice here, but is no longer for that; bm25s
  takes the length of a text from its number of tokens, so a repeated title makes a text longer.
* Its index of a corpus is built from all tokens of the corpus in memory.
* It takes two to three times as long for the index of a document of 20 pages, which environments
  build whenever a document is searched for the first time.
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
    """The texts that hold a word.

    Attributes:
        texts: Numbers of the texts, the first text being 0, ascending, integers ``[holding]``.
        weights: What the word adds to the score of each text, float32 ``[holding]``.
    """

    texts: Integers
    weights: Scores


class Bm25:
    """Ranks texts by BM25.

    A word of the query adds to the score of a text, where `m` of `n` texts hold the word, `f` is
    how often the text holds it, and `l` is the length of the text divided by the mean length::

        log(1 + (n - m + 1/2) / (m + 1/2)) * f / (f + k1 (1 - b + b l))

    This is eq. 3.15 of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
    Beyond" (2009), with the logarithm of Lucene, which is never negative, and without the constant
    factor ``k1 + 1``, which does not change a ranking.

    Args:
        texts: Number of texts.
        postings: Returns the postings of a word, or None if no text holds the word.
    """

    def __init__(self, texts: int, postings: Callable[[str], Postings | None]) -> None:
        self.texts = texts
        self._postings = postings

    def scores(self, words: Iterable[str]) -> Scores:
        """Return the score of each text, float32 ``[texts]``; 0 for a text without these words.

        Args:
            words: Words of the query. A word that is given twice counts twice.
        """
        # In double precision the sum of some weights does not depend on their order, so that texts
        # that tie come in the order of their numbers, and not of rounding errors.
        scores = np.zeros(self.texts)
        for word in words:
            found = self._postings(word)
            if found is not None:
                scores[found.texts] += found.weights
        return scores.astype(np.float32)

    def best(self, words: Iterable[str], count: int) -> list[int]:
        """Return the numbers of the best `count` texts with a score above 0, best first.

        Texts of equal scores come in the order of their numbers.
        """
        scores = self.scores(words)
        found = np.flatnonzero(scores > 0)
        values = scores[found]
        if len(found) > count:  # sort only those that can be among the best
            likely = values >= np.partition(values, -count)[-count]
            found, values = found[likely], values[likely]
        order = np.argsort(-values, kind="stable")[:count]
        return [int(text) for text in found[order]]


class PostingsTable:
    """The postings of a few texts, in memory.

    Args:
        texts: The words of each text.
        k1: How slowly repetitions of a word stop counting.
        b: How strongly long texts are held back, 0 to 1.
    """

    def __init__(self, texts: Sequence[Sequence[str]], k1: float, b: float) -> None:
        lengths = [len(words) for words in texts]
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__  # a new word gets the next number
        words = np.fromiter(map(self._numbers.__getitem__, chain.from_iterable(texts)), np.int64)
        # Each pair of a word and a text as one number, so that sorting groups the pairs by word.
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
        """Return the postings of a word, or None if no text holds the word."""
        number = self._numbers.get(word)
        if number is None:
            return None
        part = slice(self._starts[number], self._ends[number])
        return Postings(self._all.texts[part], self._all.weights[part])


def length_norms(lengths: Sequence[int], k1: float, b: float) -> Scores:
    """Return ``k1 (1 - b + b l)`` of each text, where `l` is its length divided by the mean length.

    Args:
        lengths: Number of words of each text.
        k1: How slowly repetitions of a word stop counting.
        b: How strongly long texts are held back, 0 to 1.
    """
    relative = np.asarray(lengths) / (np.mean(lengths) or 1) if lengths else np.zeros(0)
    return (k1 * (1 - b + b * relative)).astype(np.float32)


def term_weights(counts: Integers, norms: Scores, holding: int | Integers, texts: int) -> Scores:
    """Return what words add to the scores of texts: the formula of `Bm25`.

    Args:
        counts: How often the text of each posting holds the word, ``[postings]``.
        norms: The `length_norms` of the texts of these postings, ``[postings]``.
        holding: Number of texts that hold the word: one for all postings, or ``[postings]``.
        texts: Number of texts.
    """
    rarity = np.log1p((texts - holding + 0.5) / (np.asarray(holding) + 0.5)).astype(np.float32)
    times = counts.astype(np.float32)
    weights: Scores = rarity * times / (times + norms)
    return weights
