"""Ranks pages by their vectors, and opens rankers and embedders by name.

The names are those of `gym.make` and of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import Document, PageRanker, unknown_document
from visenv.documents.embedder import Embedder, max_sim
from visenv.errors import DataError, UnknownNameError
from visenv.retrieval.index_names import chosen_model, read_place
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


EMBEDDERS = ("text", "clip")


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
    from visenv.documents.sentence_models import ClipEmbedder, TextEmbedder
    from visenv.scorers.backends.encoder import CLIP_MODEL, PACKAGED_MODEL

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
