"""Caches the rendered pages of documents, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from typing_extensions import override

from visenv.cache import SharedCache
from visenv.documents.document import Document
from visenv.types import Image

RENDERED_BYTES = 128 * 2**20
"""Most bytes of rendered pages in the cache: about 45 A4 pages of 1120 px."""


class RenderedPages:
    """Caches the pages rendered last, of any number of documents.

    Args:
        budget: Most bytes of pixels in the cache.
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
