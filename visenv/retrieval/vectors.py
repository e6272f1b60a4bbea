"""Defines vectors, and the interface of their makers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError

Vectors = NDArray[np.float32]
"""Vectors of unit length, float32 ``[vectors, dimension]``."""

_UNIT_TOLERANCE = 1e-3


class VectorMaker(Protocol):
    """Makes vectors.

    Attributes:
        name: Name of the weights. Vectors of different names cannot be compared.
        dimension: Length of each vector.
    """

    name: str

    @property
    def dimension(self) -> int:
        """Return the length of each vector."""
        ...


def checked(vectors: Vectors, embedder: VectorMaker) -> Vectors:
    """Return the vectors if they are valid for the embedder.

    Raises:
        ConfigurationError: If they are not float32, finite, of its dimension and of unit length.
    """
    expected = f"{embedder.name!r} must give float32 [vectors, {embedder.dimension}] of unit length"
    if vectors.dtype != np.float32 or vectors.ndim != 2 or vectors.shape[1] != embedder.dimension:
        raise ConfigurationError(f"{expected}, got {vectors.dtype} {list(vectors.shape)}.")
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.all(np.abs(lengths - 1) <= _UNIT_TOLERANCE):
        raise ConfigurationError(f"{expected}, got lengths {lengths.min():g} to {lengths.max():g}.")
    return vectors


def check_same_embedder(name: str, dimension: int, embedder: VectorMaker, where: str) -> None:
    """Raise an error for vectors of another embedder.

    Args:
        name: Name of the embedder that made the stored vectors.
        dimension: Dimension of the stored vectors.
        embedder: The embedder to use with them.
        where: Where they are stored, for the message.

    Raises:
        ConfigurationError: If name or dimension differ.
    """
    if (name, dimension) != (embedder.name, embedder.dimension):
        raise ConfigurationError(
            f"The vectors in {where} were made by embedder {name!r} (dimension {dimension}), not "
            f"by {embedder.name!r} (dimension {embedder.dimension}). Use that embedder, or another "
            "folder."
        )
