"""Defines documents: numbered pages, each with an image and a text layer.

The rendered pages of documents can be cached, within a budget of bytes (`RenderedPages`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from rapidfuzz import process
from typing_extensions import override

from visenv.cache import SharedCache
from visenv.types import Image

_LISTED = 5
_CHARACTERS = 80

RENDERED_BYTES = 128 * 2**20
"""Maximum number of bytes of rendered pages in the cache: about 45 A4 pages of 1120 px."""


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


class RenderedPages:
    """Caches the pages rendered last, of any number of documents.

    Args:
        budget: Maximum number of bytes of pixels in the cache.
    """

    def __init__(self, budget: int = RENDERED_BYTES) -> None:
        self._images: SharedCache[tuple[str, int, int], Image] = SharedCache(budget, _bytes)

    def get(self, document: Document, page: int, long_side: int) -> Image:
        """Return the page, from the cache or rendered; the key contains the document's name.

        Raises:
            DataError: If the page cannot be rendered.
        """
        render = partial(document.page_image, page, long_side)
        return self._images.get((document.name, page, long_side), render)


class RenderedDocument:
    """Represents a document whose rendered pages are cached for all callers.

    Args:
        document: The document to render.
        pages: The cache, which the documents of one library share; their names must differ.
    """

    def __init__(self, document: Document, pages: RenderedPages) -> None:
        self.name = document.name
        self._document = document
        self._pages = pages

    @property
    def sha256(self) -> str:
        """Return the hash of the document's content; see `Document`."""
        return self._document.sha256

    def __len__(self) -> int:
        return len(self._document)

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page as an image whose longer side is at most `long_side` pixels.

        Raises:
            DataError: If the page cannot be rendered; the message names document and page.
        """
        return self._pages.get(self._document, page, long_side)

    def page_text(self, page: int) -> str:
        """Return the page's text layer, ``""`` if it has none.

        Raises:
            DataError: If the page cannot be read; the message names document and page.
        """
        return self._document.page_text(page)

    @override
    def __repr__(self) -> str:
        return f"RenderedDocument({self._document!r})"


class OutlinedDocument(RenderedDocument):
    """Represents a rendered document whose outline is shown in an overview.

    Args:
        document: The document of the pages.
        pages: The cache, which the documents of one library share; their names must differ.
        draw_outline: Draws the outline, a document with the same number of pages and another name;
            it is called when an overview first needs the outline.
    """

    def __init__(
        self, document: Document, pages: RenderedPages, draw_outline: Callable[[], Document]
    ) -> None:
        super().__init__(document, pages)
        self._draw_outline = draw_outline
        self._outline: Document | None = None

    def page_outline(self, page: int, long_side: int) -> Image:
        """Return the page's outline, an image whose longer side is at most `long_side` pixels."""
        if self._outline is None:
            self._outline = self._draw_outline()
        return self._pages.get(self._outline, page, long_side)


def _bytes(image: Image) -> int:
    return image.pixels.nbytes
