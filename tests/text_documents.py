"""Defines a document and an embedder for tests, which need no files and no weights."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Collection, Sequence

import numpy as np

from visenv.documents.document import Document
from visenv.documents.overview import size_with_side_at_most
from visenv.errors import DataError
from visenv.retrieval.vectors import Vectors
from visenv.types import Image


class TextDocument:
    """Represents a document with given texts; each page has its own plain color.

    Args:
        name: Name of the document.
        texts: The text of each page.
        size: ``(width, height)`` of a page, pixels.
        broken: Numbers of pages that can be neither rendered nor read.
    """

    def __init__(
        self,
        name: str,
        texts: Sequence[str],
        *,
        size: tuple[int, int] = (85, 110),
        broken: Collection[int] = (),
    ) -> None:
        self.name = name
        self._texts = tuple(texts)
        self._size = size
        self._broken = frozenset(broken)

    @property
    def sha256(self) -> str:
        """Return the hash of the data of the pages."""
        made_of = (self._texts, self._size, sorted(self._broken))
        return hashlib.sha256(repr(made_of).encode("utf-8", "surrogatepass")).hexdigest()

    def __len__(self) -> int:
        return len(self._texts)

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page, filled with its color, `page_color`.

        Raises:
            DataError: If there is no such page, or it is broken.
        """
        self._check(page)
        width, height = size_with_side_at_most(self._size, long_side)
        pixels = np.full((height, width, 3), page_color(page), np.uint8)
        return Image.from_pixels(pixels)

    def page_text(self, page: int) -> str:
        """Return the page's text.

        Raises:
            DataError: If there is no such page, or it is broken.
        """
        self._check(page)
        return self._texts[page - 1]

    def _check(self, page: int) -> None:
        if not 1 <= page <= len(self):
            raise DataError(f"{self.name!r} has pages 1 to {len(self)}, there is no page {page}.")
        if page in self._broken:
            raise DataError(f"Page {page} of {self.name!r} is broken.")


def page_color(page: int) -> tuple[int, int, int]:
    """Return the color of a `TextDocument`'s page, unique among the first 65,536 pages."""
    return page % 256, page // 256 % 256, 7


class WordEmbedder:
    """Makes one vector for each line of a page's text: the sum of random directions of its words.

    Args:
        name: Name of the embedder.
        dimension: Length of a vector.
    """

    def __init__(self, name: str = "words", dimension: int = 64) -> None:
        self.name = name
        self.dimension = dimension

    def embed_query(self, text: str) -> Vectors:
        """Return ``[1, dimension]``."""
        return self._line(text or "nothing")[None]

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        """Return ``[lines, dimension]`` for each page; no lines for a page without words.

        Raises:
            DataError: If a page cannot be read.
        """
        return [self._lines(document.page_text(page)) for page in pages]

    def _lines(self, text: str) -> Vectors:
        lines = [self._line(line) for line in text.splitlines() if re.search(r"\w", line)]
        # [lines, dimension], also without lines.
        return np.array(lines, np.float32).reshape(len(lines), self.dimension)

    def _line(self, line: str) -> Vectors:
        words = re.findall(r"\w+", line.casefold()) or [line]
        added = np.sum([self._word(word) for word in words], axis=0)
        unit: Vectors = (added / np.linalg.norm(added)).astype(np.float32)
        return unit

    def _word(self, word: str) -> Vectors:
        seed = zlib.crc32(word.encode("utf-8", "replace"))
        return np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
