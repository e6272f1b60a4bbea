"""Defines documents: numbered pages, each with an image and a text layer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from rapidfuzz import process

from visenv.types import Image

_LISTED = 5
_CHARACTERS = 80


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


def unknown_document(name: str, known: Collection[str]) -> str:
    """Return a sentence with the names of the nearest documents, or of some other documents.

    Args:
        name: The requested name: any text, of any length.
        known: The existing names.
    """
    cut = name[:_CHARACTERS]
    shown = ascii(cut) + ("…" if len(name) > _CHARACTERS else "")
    near = process.extract(cut, list(known), limit=_LISTED, score_cutoff=50)
    if near:
        hint = f"Did you mean {' or '.join(ascii(found) for found, _, _ in near)}?"
    else:
        there = ", ".join(map(ascii, sorted(known)[:_LISTED])) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"Documents: {there}{more}."
    return f"There is no document called {shown}. {hint}"
