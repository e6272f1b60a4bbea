"""How a document's pages become rows of a collection, and which of them are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.documents.embedder import Vectors


class Row(NamedTuple):
    """A row of the collection: its name, one vector, and what that is of."""

    name: str
    vector: NDArray[np.float32]
    about: dict[str, Any]


def page_rows(document: str, pages: int, page: int, vectors: Vectors) -> list[Row]:
    """A page as rows: one for each vector, or a row of zeros that says that it has none.

    Args:
        document: Name of the document.
        pages: How many pages it has.
        page: Number of this one, from 1.
        vectors: ``[vectors, dimension]``, perhaps none.
    """
    shown = vectors if len(vectors) else np.zeros((1, vectors.shape[1]), np.float32)
    about = {"document": document, "pages": pages, "page": page, "vectors": len(vectors)}
    return [
        Row(f"{document}/{page}/{number}", vector, {**about, "vector": number})
        for number, vector in enumerate(shown)
    ]


class StoredRows:
    """What a collection holds of a document.

    Attributes:
        pages: How many pages the document has.
        found: Rows there, by page.
    """

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.found: Counter[int] = Counter()
        self._vectors: dict[int, int] = {}

    def add(self, about: Mapping[str, Any]) -> None:
        """Take note of a row."""
        self.found[about["page"]] += 1
        self._vectors[about["page"]] = about["vectors"]

    def forget(self, page: int) -> None:
        """Take note that the page's rows are deleted."""
        del self.found[page]

    def missing(self) -> list[int]:
        """The pages that are not there with all their rows."""
        return [page for page in range(1, self.pages + 1) if not self._has(page)]

    @property
    def whole(self) -> bool:
        """Whether every page is there."""
        return not self.missing()

    def counts(self) -> list[int]:
        """How many vectors each page has, of a whole document."""
        return [self._vectors[page] for page in range(1, self.pages + 1)]

    def _has(self, page: int) -> bool:
        return page in self._vectors and self.found[page] == max(1, self._vectors[page])
