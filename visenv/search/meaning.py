"""Searches passages by meaning: they are embedded once, stored in Chroma, and compared exactly.

The vectors are in a `visenv.retrieval.vector_store.VectorStore`, whose module explains why Chroma
stores them, but a derived array answers queries (`NearestVectors`). The time to compare a query
with all vectors is the time to read them. They are therefore read in half precision first. The
vectors that may be among the best despite the rounding are then compared in their original
precision.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.decoding.sqlite import open_database
from visenv.errors import DataError, ServiceError
from visenv.retrieval.sealed_vectors import MANIFEST, SealedVectors
from visenv.retrieval.vector_store import VectorItem, VectorStore
from visenv.retrieval.vectors import Encoder, Vectors, check_same_embedder, chosen_model
from visenv.search.corpus import Passage, cleaned
from visenv.search.words import FILE as PASSAGES
from visenv.search.words import read_passages

_MARGIN = 1 / 256
"""Upper bound of the change of a score difference by rounding: 2^-10 by the products, because a sum
of ``|v q|`` is at most 1, and 2^-12 by the score itself, each twice. Sums have single precision."""

GROUP = "passages"
_BATCH = 256


class NearestVectors:
    """Finds the vectors with the highest inner products.

    Args:
        vectors: Vectors of unit length, float32 ``[vectors, dimension]``. They may be mapped from a
            file, of which a search then reads only a small part.
    """

    def __init__(self, vectors: Vectors) -> None:
        import torch

        self._vectors = vectors
        self._halves = torch.from_numpy(vectors.astype(np.float16))

    def find(self, query: Vectors, count: int) -> list[int]:
        """Return the rows of the `count` nearest vectors, or of all if there are fewer.

        Args:
            query: A vector of unit length, float32 ``[dimension]``.
            count: Number of vectors to return, at least 1.
        """
        import torch

        rough = (self._halves @ torch.from_numpy(query.astype(np.float16))).float()
        count = min(count, len(rough))
        least = torch.topk(rough, count).values[-1] - _MARGIN
        likely = torch.nonzero(rough >= least)[:, 0].numpy()
        # Single precision sums the same vector differently at another row, so that ties would be
        # missed.
        exact = self._vectors[likely].astype(np.float64) @ query.astype(np.float64)
        scores = exact.astype(np.float32)
        return [int(row) for row in likely[np.lexsort((likely, -scores))][:count]]


def build(folder: Path, encoder: Encoder, on_passage: Callable[[], None] | None = None) -> int:
    """Embed the passages of the index of words in `folder`; return the number of new ones.

    Passages are stored by the hash of their text, so that those of an earlier build are not
    embedded again, even if their place in the corpus changed.

    Args:
        folder: Folder that `visenv.search.words.build` wrote.
        encoder: The encoder of the passages.
        on_passage: Function that is called for each embedded passage.

    Raises:
        DataError: If there are no passages, or the data of an earlier build are damaged.
        ConfigurationError: If another encoder made this index, or another process is writing.
    """
    new = 0
    keys: list[str] = []
    with VectorStore(folder, encoder) as store:
        for batch in _batches(folder / PASSAGES):
            names = [hashlib.sha256(text.encode()).hexdigest() for text in batch]
            stored = store.counts(names)
            missing = {
                key: text for key, text in zip(names, batch, strict=True) if key not in stored
            }
            vectors = encoder.encode(list(missing.values()))
            store.put([VectorItem(key, vectors[row : row + 1]) for row, key in enumerate(missing)])
            new += len(missing)
            keys += names
            for _ in batch:
                if on_passage is not None:
                    on_passage()
        store.seal({GROUP: keys})
    return new


def _batches(file: Path) -> Iterator[list[str]]:
    """Yield the texts to embed, title and text of each passage, in the order of the corpus."""
    if not file.exists():
        raise DataError(f"{file.parent} holds no passages: `visenv search build` writes them.")
    with closing(open_database(file)) as connection:
        rows = connection.execute("SELECT title, text FROM passages ORDER BY id")
        while batch := rows.fetchmany(_BATCH):
            yield [f"{title}\n{text}" for title, text in batch]


class MeaningSearch:
    """Searches an index that `build` wrote.

    Args:
        folder: Folder of the index.
        device: PyTorch device of the encoder.
        model: The model with which the index was built: a hub name or a folder. None means
            all-MiniLM-L6-v2, because a file does not choose a model.

    Raises:
        ConfigurationError: If the index was built with another model.
        DataError: If the folder contains no complete index of vectors.
    """

    def __init__(self, folder: str | Path, device: str = "cpu", model: str | None = None) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.device = device
        self.model = model
        if not (self.folder / MANIFEST).is_file():
            raise DataError(
                f"{self.folder} holds no index of vectors: run `visenv search build --meaning`."
            )
        sealed = SealedVectors(self.folder)
        group = sealed.group(GROUP)
        if group is None:
            raise DataError(
                f"{self.folder} contains vectors, but none of passages: run `visenv search build "
                "--meaning`."
            )
        self._seal, self._vectors = sealed.seal, group.vectors
        chosen = chosen_model(self._seal.embedder, model, f"meaning:{folder}")
        self._encoder = Encoder(chosen, device)
        self.passages = len(self._vectors)
        self.name = f"meaning:{self._encoder.name}:{self.passages}"

    @cached_property
    def _nearest(self) -> NearestVectors:
        return NearestVectors(self._vectors)

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the passages that are nearest in meaning, by cosine similarity.

        Raises:
            ServiceError: If the index is damaged.
        """
        text = cleaned(query)
        if not text:
            return []
        return self._passages(self.nearest(text, count))

    def nearest(self, query: str, count: int) -> list[int]:
        """Return the row indices, from 0, of the nearest passages; ties are ordered by index.

        Raises:
            ConfigurationError: If another encoder made the index.
        """
        check_same_embedder(
            self._seal.embedder, self._seal.dimension, self._encoder, str(self.folder)
        )
        return self._nearest.find(self._encoder.encode([query])[0], count)

    def _passages(self, rows: list[int]) -> list[Passage]:
        try:
            with closing(open_database(self.folder / PASSAGES)) as connection:
                return read_passages(connection, rows)
        except (sqlite3.Error, OSError, DataError) as error:
            raise ServiceError("search", f"{self.folder / PASSAGES}: {error}") from error

    def close(self) -> None:
        """Release the half-precision copy of the vectors."""
        vars(self).pop("_nearest", None)

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "device": self.device, "model": self.model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
