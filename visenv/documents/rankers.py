"""Opens rankers and embedders by name, for `gym.make` and the command line."""

from __future__ import annotations

from pathlib import Path

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import PageRanker
from visenv.documents.embedder import Embedder
from visenv.documents.vector_ranker import VectorRanker
from visenv.errors import UnknownNameError
from visenv.retrieval.index_names import chosen_model, read_place
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
