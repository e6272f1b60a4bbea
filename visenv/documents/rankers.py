"""Opens rankers and embedders by name, for `gym.make` and the command line."""

from __future__ import annotations

from pathlib import Path

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import PageRanker
from visenv.documents.embedder import Embedder
from visenv.documents.vector_ranker import VectorRanker
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.retrieval.sealed_vectors import SealedVectors

EMBEDDERS = ("text", "clip")


def open_embedder(kind: str, model: str | None = None, device: str = "cpu") -> Embedder:
    """Return an embedder by kind.

    Args:
        kind: ``"text"`` (a sentence encoder over text layers) or ``"clip"`` (over page images).
        model: Its weights: a hub name or a folder. The defaults are all-MiniLM-L6-v2, from an
            installed package, and clip-ViT-B-32.
        device: PyTorch device.

    Raises:
        UnknownNameError: If there is no such kind.
        ConfigurationError: If the default text model is not installed.
    """
    from visenv.documents.sentence_models import ClipEmbedder, TextEmbedder
    from visenv.scorers.backends.encoder import PACKAGED_MODEL

    if kind not in EMBEDDERS:
        raise UnknownNameError("embedder", kind, EMBEDDERS)
    if kind == "clip":
        return ClipEmbedder(model or "clip-ViT-B-32", device=device)
    return TextEmbedder(None if model == PACKAGED_MODEL else model, device=device)


def open_ranker(text: str) -> PageRanker:
    """Return a ranker by name.

    Args:
        text: ``"bm25"``, or ``"text:<index>"`` or ``"clip:<index>"`` with the folder of an index
            that ``visenv index`` made; the embedder is the one of the index.

    Raises:
        UnknownNameError: If there is no such ranker.
        ConfigurationError: If the name contains no index.
        DataError: If the folder contains no finished index.
    """
    kind, _, index = text.partition(":")
    if text == "bm25":
        return Bm25Ranker()
    if kind not in EMBEDDERS:
        raise UnknownNameError("ranker", kind, ("bm25", *EMBEDDERS))
    if not index:
        raise ConfigurationError(f"Name the folder of the index, {kind}:<index>; got {text!r}.")
    vectors = SealedVectors(Path(index))
    return VectorRanker(vectors, open_embedder(kind, vectors.seal.embedder))
