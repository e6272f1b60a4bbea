"""Finds the documents of a preset by name; writes and draws them on demand, and caches some."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from visenv.cache import SharedCache
from visenv.documents.document import Document, OutlinedDocument, RenderedDocument, RenderedPages
from visenv.documents.pdf import PdfDocument
from visenv.errors import DataError, UnknownNameError
from visenv.worlds.reports.cards import colors_of, draw_cards, write_cards
from visenv.worlds.reports.drawing import draw_outline, draw_report
from visenv.worlds.reports.report import write_report

SEEDS = 10**9
"""Every seed below this has a document."""

DOCUMENTS = (0, 10_000)
"""Range of the seeds of the documents that are drawn by default; the end is exclusive."""

HELD_OUT_DOCUMENTS = (10_000, 20_000)
"""Range of the seeds of the documents of held-out samples by default."""

_KEPT = 64


class ReportGenre(NamedTuple):
    """Describes a kind of document.

    Attributes:
        prefix: The start of each name, followed by the seed.
        write: Returns the content of the document of a seed.
        draw: Returns that content as a PDF.
        outline: Returns the PDF that an overview shows; None shows thumbnails of the pages
            themselves, which must not reveal answers.
        values: Returns the value that each page shows, if there is only one on each.
    """

    prefix: str
    write: Callable[[int], Any]
    draw: Callable[[Any], bytes]
    outline: Callable[[Any], bytes] | None = None
    values: Callable[[Any], tuple[str, ...]] | None = None


GENRES = {
    "default": ReportGenre("report-", write_report, draw_report, draw_outline),
    "tiny": ReportGenre("cards-", write_cards, draw_cards, values=colors_of),
}


class ReportsLibrary:
    """Implements `Library` with a document for each seed; ``report-31`` is made from its name.

    The documents used last are cached: 64 with their text and drawing, and 128 MiB of rendered
    pages. The library can be pickled, without its caches.

    Args:
        preset: A key of `GENRES`.

    Raises:
        UnknownNameError: If there is no such preset.
    """

    def __init__(self, preset: str = "default") -> None:
        if preset not in GENRES:
            raise UnknownNameError("preset of reports", str(preset), GENRES)
        self.preset = preset
        self._texts: SharedCache[int, Any] = SharedCache(_KEPT)
        self._documents: SharedCache[int, Document] = SharedCache(_KEPT)
        self._pages = RenderedPages()

    def name(self, seed: int) -> str:
        """Return the name of the document of that seed, 0 to ``SEEDS - 1``."""
        return f"{self._genre.prefix}{seed}"

    def document(self, name: str) -> Document:
        """Return the document of that name; it is the same object while it is in the cache.

        Raises:
            DataError: If no document has that name; the message describes valid names.
        """
        seed = self._seed(name)
        return self._documents.get(seed, lambda: self._draw(seed))

    def values(self, name: str) -> tuple[str, ...]:
        """Return the value that each page of a document shows; empty if pages show several.

        Raises:
            DataError: If no document has that name.
        """
        values, text = self._genre.values, self.text(self._seed(name))
        return () if values is None else values(text)

    def text(self, seed: int) -> Any:
        """Return the text of that seed's document: a `Report`, or `Cards` of ``"tiny"``."""
        return self._texts.get(seed, lambda: self._genre.write(seed))

    @property
    def _genre(self) -> ReportGenre:
        return GENRES[self.preset]

    def _seed(self, name: str) -> int:
        found = re.fullmatch(rf"{self._genre.prefix}(0|[1-9][0-9]{{0,8}})(\.pdf)?", name)
        if found is None:
            raise DataError(
                f"There is no document called {name[:80]!a}. Names are {self.name(0)!r} to "
                f"{self.name(SEEDS - 1)!r}."
            )
        return int(found[1])

    def _draw(self, seed: int) -> Document:
        text, name, outline = self.text(seed), self.name(seed), self._genre.outline
        drawn = PdfDocument.from_bytes(self._genre.draw(text), name)
        if outline is None:
            return RenderedDocument(drawn, self._pages)
        return OutlinedDocument(
            drawn, self._pages, lambda: PdfDocument.from_bytes(outline(text), f"{name} outline")
        )
