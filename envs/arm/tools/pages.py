"""Defines the tools of documents: retrieve pages, and crop and enlarge parts of them.

They differ from the public code in all modes, because its behavior has no advantage: a name never
becomes a path; the error for a missing page lists the existing pages (in the public code it is an
unfilled template); a query without a result is an error, and does not count as a success;
``image_idx`` must be an integer, and ``"3"`` is an error with an explanation (the public code
applies ``int()`` to any value).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import Document, Library, PageRanker
from visenv.documents.overview import LONG_SIDE, stitch
from visenv.errors import ConfigurationError, DataError, ToolError
from visenv.images import QWEN_PIXELS, Window
from visenv.text.words import search_words
from visenv.tools.base import Arguments, ArgumentsT, Store, Tool, ToolResult, shown
from visenv.tools.crop_box import MOST_ASPECT, is_too_thin
from visenv.types import GroundTruth, Image, Sample

from .crop import CropZoom, Region

LARGER = 3
"""Size at which a page is rendered for a crop, relative to its shown size."""

PAGES_FOUND = 5
"""Number of pages of a query, ``RETRIEVE_K`` of the public configuration."""

MOST_QUERY_CHARACTERS = 1000

_FileName = Annotated[str, Field(description="Name of the document, as given in the task.")]

_Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MOST_QUERY_CHARACTERS,
        description="What to look for: words that the wanted pages contain.",
    ),
]

_Number = Annotated[int, Field(description="Number of the page; the first page is 1.")]


class PageZoom(CropZoom):
    """Implements `CropZoom` with crops from a larger rendering of a page.

    A page that `PageByIndex` showed is rendered at `LARGER` times its size, if the document has
    more detail, and the part is cut from that. Pages side by side, which `PageByQuery` shows, and
    the overview are cut as they are shown. With ``compat="arm"`` all images are, as in the public
    tool.

    Args:
        pages: The tool that shows pages.
        max_pixels: Maximum number of pixels of the result, see `CropZoom`.
        compat: See `CropZoom`.
    """

    def __init__(
        self,
        pages: PageByIndex,
        *,
        max_pixels: int = QWEN_PIXELS,
        compat: Literal["arm"] | None = None,
    ) -> None:
        super().__init__(max_pixels=max_pixels, compat=compat)
        self.pages = pages

    @override
    def region_of(self, name: str, picture: Image) -> Region:
        """Return the region of a picture in native pixels; a page has those of its rendering."""
        region = super().region_of(name, picture)
        if region.image is not picture:
            return region
        for page in self.pages.shown:
            if page.image is picture:
                document = self.pages.library.document(page.document)
                drawn = document.page_image(page.page, LARGER * self.pages.long_side)
                return Region(name, drawn, Window.whole(drawn.size))
        return region


class QueryArguments(Arguments):
    """Holds the arguments of a search in a document."""

    filename: _FileName
    query: _Query


class IndexArguments(Arguments):
    """Holds the arguments of a request for a page."""

    filename: _FileName
    image_idx: _Number


class _PageTool(Tool[ArgumentsT]):
    """Implements the parts that both tools share: a library, and the sample's document."""

    def __init__(self, library: Library, *, long_side: int = LONG_SIDE) -> None:
        if long_side < 1:
            raise ConfigurationError(f"long_side must be at least 1 pixel, got {long_side!r}.")
        self.library = library
        self.long_side = long_side
        self._name = ""

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the name of the sample's document, for random arguments."""
        self._name = sample.truth_as(GroundTruth).document

    def _document(self, name: str) -> Document:
        try:
            return self.library.document(name)
        except DataError as error:
            raise ToolError(str(error)) from error

    def _image(self, document: Document, page: int) -> Image:
        """Return the decoded page, so that errors occur here and not when the image is accessed."""
        image = document.page_image(page, self.long_side)
        if is_too_thin(image.size):
            width, height = image.size
            raise DataError(
                f"Page {page} of {document.name!r} is too thin to be shown: it would have {width} "
                f"x {height} pixels, and a side may be at most {MOST_ASPECT} times as long as the "
                "other."
            )
        return Image.from_pixels(image.pixels)


class PageByQuery(_PageTool[QueryArguments]):
    """Shows the pages of one document that match a query best, side by side.

    Args:
        library: The documents.
        ranker: The ranking of the pages; by default BM25 over their text.
        pages: Maximum number of shown pages.
        long_side: Longest side of each page, pixels.

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """

    name = "doc_page_retrieval_by_query"
    description = (
        "Searches one document and shows the pages that fit the query best, side by side in one "
        "image, the best on the left, each under its number. If they do not help, try other words."
    )
    arguments = QueryArguments

    def __init__(
        self,
        library: Library,
        ranker: PageRanker | None = None,
        *,
        pages: int = PAGES_FOUND,
        long_side: int = LONG_SIDE,
    ) -> None:
        super().__init__(library, long_side=long_side)
        if pages < 1:
            raise ConfigurationError(f"pages must be at least 1, got {pages!r}.")
        self.ranker = ranker if ranker is not None else Bm25Ranker()
        self.pages = pages

    @override
    def call(self, arguments: QueryArguments, store: Store) -> ToolResult:
        """Search, and show the pages side by side; several have borders and page numbers.

        The result's ``detail`` contains ``document``, ``pages``, the numbers of the shown pages,
        best first, and ``document_pages``, the number of all pages. If no shown page has a word of
        the query in its text, ``shares_no_word`` is true: a ranking by meaning returns pages for
        every text.

        Raises:
            ToolError: If there is no such document, nothing matches, or no page can be shown.
        """
        document = self._document(arguments.filename)
        found = self._found(document, arguments.query)
        images, failed = self._images(document, found)
        pages = [page for page in found if page not in failed]
        text = f"Pages {_listed(pages)} of {document.name!r}, from left to right, the best first."
        numbers = pages if len(pages) > 1 else ()
        if failed:
            text += f" Found too, but impossible to show: {'; '.join(failed.values())}"
        detail: dict[str, Any] = {
            "document": document.name,
            "pages": pages,
            "document_pages": len(document),
        }
        if not self._share_a_word(document, pages, arguments.query):
            detail["shares_no_word"] = True
        return ToolResult((stitch(images, long_side=self.long_side, numbers=numbers), text), detail)

    def _found(self, document: Document, query: str) -> list[int]:
        if not search_words(query):  # a ranking by meaning would return pages for blanks, too
            raise ToolError(f"No page fits the query {shown(query)}, because it has no words.")
        try:
            ranked = self.ranker.rank(document, query, self.pages)
        except DataError as error:
            raise ToolError(f"{document.name!r} cannot be searched: {error}") from error
        if not ranked and not _has_text(document):
            raise ToolError(
                f"{document.name!r} has no text layer, so no query finds a page. Look at its pages "
                f"by number, 1 to {len(document)}."
            )
        if not ranked:
            raise ToolError(
                f"No page of {document.name!r} fits the query {shown(query)}. Try other words, or "
                f"look at its pages by number, 1 to {len(document)}."
            )
        return list(dict.fromkeys(ranked))[: self.pages]

    def _share_a_word(self, document: Document, pages: Sequence[int], query: str) -> bool:
        if isinstance(self.ranker, Bm25Ranker):  # it finds only such pages
            return True
        words = set(search_words(query))
        return any(not words.isdisjoint(_words_of(document, page)) for page in pages)

    def _images(
        self, document: Document, pages: Sequence[int]
    ) -> tuple[list[Image], dict[int, str]]:
        """Return the pages' images, and the errors of the missing ones by page number."""
        images: list[Image] = []
        failed: dict[int, str] = {}
        for page in pages:
            try:
                images.append(self._image(document, page))
            except DataError as error:
                failed[page] = str(error)
        if not images:
            raise ToolError(f"None of the pages found can be shown: {'; '.join(failed.values())}")
        return images, failed

    @override
    def example(self) -> QueryArguments:
        return QueryArguments(filename="annual_report", query="operating income by region")

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> QueryArguments:
        """Return a query of one random word, about the sample's document."""
        words = ("table", "figure", "total", "summary", "year")
        return QueryArguments(filename=self._name, query=str(rng.choice(words)))


class ShownPage(NamedTuple):
    """Holds a shown page: its image, the name of its document, and its number."""

    image: Image
    document: str
    page: int


class PageByIndex(_PageTool[IndexArguments]):
    """Shows one page of a document.

    Args:
        library: The documents.
        long_side: Longest side of the page, pixels.

    Attributes:
        shown: The pages that were shown in the episode.

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """

    name = "doc_page_retrieval_by_index"
    description = "Shows one page of a document, by its number."
    arguments = IndexArguments

    def __init__(self, library: Library, *, long_side: int = LONG_SIDE) -> None:
        super().__init__(library, long_side=long_side)
        self.shown: list[ShownPage] = []

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the name of the sample's document, and clear the list of shown pages."""
        super().reset(sample, store)
        self.shown = []

    @override
    def end_episode(self) -> None:
        self.shown = []

    @override
    def call(self, arguments: IndexArguments, store: Store) -> ToolResult:
        """Show the page.

        The result's ``detail`` contains ``document``, ``pages``, a list with the page's number, and
        ``document_pages``, the number of all pages.

        Raises:
            ToolError: If there is no such document or page, or it cannot be shown.
        """
        document = self._document(arguments.filename)
        page = arguments.image_idx
        if not 1 <= page <= len(document):
            raise ToolError(
                f"{document.name!r} has no page {shown(page)}: image_idx must be from 1 to "
                f"{len(document)}, the first page being 1."
            )
        try:
            image = self._image(document, page)
        except DataError as error:
            raise ToolError(f"{error} Other pages may still work.") from error
        self.shown.append(ShownPage(image, document.name, page))
        text = f"Page {page} of {document.name!r}, which has {len(document)} pages."
        detail = {"document": document.name, "pages": [page], "document_pages": len(document)}
        return ToolResult((image, text), detail)

    @override
    def example(self) -> IndexArguments:
        return IndexArguments(filename="annual_report", image_idx=3)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> IndexArguments:
        """Return a random page of the sample's document."""
        pages = len(self._document(self._name))
        return IndexArguments(filename=self._name, image_idx=int(rng.integers(1, pages + 1)))


def _has_text(document: Document) -> bool:
    """Return whether a page has a text layer; pages that cannot be read do not count."""
    return any(_words_of(document, page) for page in range(1, len(document) + 1))


def _words_of(document: Document, page: int) -> list[str]:
    """Return the words of the text layer of a page; none if it cannot be read."""
    with suppress(DataError):
        return search_words(document.page_text(page))
    return []


def _listed(pages: Sequence[int]) -> str:
    return ", ".join(map(str, pages))
