"""Defines documents: numbered pages, each with an image and a text layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from visenv.types import Image


@runtime_checkable
class Document(Protocol):
    """A document of at least one page. Pages are numbered from 1, as people number them.

    Attributes:
        name: What tools and prompts call it.
    """

    name: str

    @property
    def sha256(self) -> str:
        """Return the hash of the document's content, hexadecimal.

        Raises:
            DataError: If the content cannot be read; names the document.
        """
        ...

    def __len__(self) -> int:
        """Return the number of pages."""
        ...

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page as an image whose longer side is at most `long_side` pixels.

        Raises:
            DataError: If the page cannot be rendered; names document and page.
        """
        ...

    def page_text(self, page: int) -> str:
        """Return the page's text layer, ``""`` where it has none.

        Raises:
            DataError: If the page cannot be read; names document and page.
        """
        ...


@runtime_checkable
class Outlined(Protocol):
    """A document that overviews show in outline, since its pages would tell too much even small."""

    def page_outline(self, page: int, long_side: int) -> Image:
        """Return the page's outline, an image whose longer side is at most `long_side` pixels.

        Raises:
            DataError: If it cannot be rendered.
        """
        ...


@runtime_checkable
class Library(Protocol):
    """Holds documents by name. A source of samples about documents has one as ``library``."""

    def document(self, name: str) -> Document:
        """Return the document of that name.

        Raises:
            DataError: If there is none; names the nearest. No name leads out of the library.
        """
        ...


class PageRanker(Protocol):
    """Orders the pages of one document by how well they fit a query."""

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """Return the best `count` distinct pages, best first, fewer where the document has fewer.

        Raises:
            DataError: If the document cannot be searched.
        """
        ...
