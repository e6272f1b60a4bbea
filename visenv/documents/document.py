"""Defines documents: numbered pages, each with an image and a text layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from visenv.types import Image


@runtime_checkable
class Document(Protocol):
    """Represents a document of at least one page. Page numbers start at 1.

    Attributes:
        name: Name of the document in tools and prompts.
    """

    name: str

    @property
    def sha256(self) -> str:
        """Return the hash of the document's content, hexadecimal.

        Raises:
            DataError: If the content cannot be read; the message names the document.
        """
        ...

    def __len__(self) -> int:
        """Return the number of pages."""
        ...

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page as an image whose longer side is at most `long_side` pixels.

        Raises:
            DataError: If the page cannot be rendered; the message names document and page.
        """
        ...

    def page_text(self, page: int) -> str:
        """Return the page's text layer, ``""`` if it has none.

        Raises:
            DataError: If the page cannot be read; the message names document and page.
        """
        ...


@runtime_checkable
class Outlined(Protocol):
    """Marks a document whose overview shows outlines, because thumbnails would reveal answers."""

    def page_outline(self, page: int, long_side: int) -> Image:
        """Return the page's outline, an image whose longer side is at most `long_side` pixels.

        Raises:
            DataError: If it cannot be rendered.
        """
        ...


@runtime_checkable
class Library(Protocol):
    """Holds documents by name. A source of samples about documents has one as its ``library``."""

    def document(self, name: str) -> Document:
        """Return the document of that name.

        Raises:
            DataError: If there is no such document; the message suggests names. No name gives
                access to files outside of the library.
        """
        ...


class PageRanker(Protocol):
    """Ranks the pages of one document by how well they match a query."""

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        """Return the best `count` distinct pages, best first; fewer if the document has fewer.

        Raises:
            DataError: If the document cannot be searched.
        """
        ...
