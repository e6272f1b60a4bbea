"""The nearest of many unit vectors: the exact ones, in less than half of the time.

Comparing a query with every vector takes as long as reading them does. So they are read in half
precision; those that rounding could have kept from the best ones are then compared as they are.
"""

from __future__ import annotations

import numpy as np

from visenv.retrieval.vectors import Vectors

_MARGIN = 1 / 256
"""More than rounding can change two scores by: 2^-10 by the products, as a sum of ``|v q|`` is at
most 1, and 2^-12 by the score itself, each twice. Sums are kept in single precision."""


class NearestVectors:
    """Finds the vectors with the highest inner products.

    Args:
        vectors: Of unit length, float32 ``[vectors, dimension]``; may be mapped from a file, of
            which a search then reads next to nothing.
    """

    def __init__(self, vectors: Vectors) -> None:
        import torch

        self._vectors = vectors
        self._halves = torch.from_numpy(vectors.astype(np.float16))

    def find(self, query: Vectors, count: int) -> list[int]:
        """Return the rows of the `count` nearest vectors, or of all if there are fewer.

        Args:
            query: Of unit length, float32 ``[dimension]``.
            count: How many, at least 1.
        """
        import torch

        rough = (self._halves @ torch.from_numpy(query.astype(np.float16))).float()
        count = min(count, len(rough))
        least = torch.topk(rough, count).values[-1] - _MARGIN
        likely = torch.nonzero(rough >= least)[:, 0].numpy()
        # Single precision sums the same vector differently at another row: ties would not show.
        exact = self._vectors[likely].astype(np.float64) @ query.astype(np.float64)
        scores = exact.astype(np.float32)
        return [int(row) for row in likely[np.lexsort((likely, -scores))][:count]]
