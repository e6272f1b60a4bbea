"""Finds the documents of a data set, and the document of each row; pages can be image handles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from visenv.data.rows import existing_folder, text_of
from visenv.documents import Document, Library
from visenv.documents.document import RenderedDocument, RenderedPages, unknown_document
from visenv.documents.overview import shrink_page
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image


class PageHandles:
    """Represents a document of image handles, with the texts of its pages if they are known.

    Args:
        name: The name in tools and prompts.
        pages: Creates the handle of each page, in order; called when the page is shown.
        texts: The text of each page, or an empty sequence.
    """

    def __init__(
        self, name: str, pages: Sequence[Callable[[], Image]], texts: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._pages = tuple(pages)
        self._texts = tuple(texts)

    @cached_property
    def sha256(self) -> str:
        """Return the hash of all pages' pixels and texts, hexadecimal; decodes each page once.

        Raises:
            DataError: If a page cannot be decoded.
        """
        hashes = [page().sha256 for page in self._pages]
        return hashlib.sha256(json.dumps([hashes, self._texts]).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self._pages)

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page, shrunk (bicubic) to at most `long_side`.

        Raises:
            DataError: If there is no such page, or its image cannot be decoded.
        """
        self._check(page)
        try:
            return shrink_page(self._pages[page - 1](), long_side)
        except DataError as error:
            raise DataError(f"Page {page} of {self.name!r} cannot be shown: {error}") from error

    def page_text(self, page: int) -> str:
        """Return the text of the page, ``""`` if it is unknown.

        Raises:
            DataError: If there is no such page.
        """
        self._check(page)
        return self._texts[page - 1] if page <= len(self._texts) else ""

    def _check(self, page: int) -> None:
        if not 1 <= page <= len(self):
            raise DataError(f"{self.name!r} has pages 1 to {len(self)}, there is no page {page}.")


class PageHandlesLibrary:
    """Holds documents by name; recently shown pages are cached within a budget."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._rendered = RenderedPages()

    def __contains__(self, name: str) -> bool:
        return name in self._documents

    def add(self, document: Document) -> None:
        """Add a document; one of the same name is replaced."""
        self._documents[document.name] = RenderedDocument(document, self._rendered)

    def document(self, name: str) -> Document:
        """Return the document of that name.

        Raises:
            DataError: If there is no such document; suggests the nearest name.
        """
        if name not in self._documents:
            raise DataError(unknown_document(name, self._documents))
        return self._documents[name]


def library_of(
    folder: Path, documents: str | Path | None, follow_links: bool | str = False
) -> Library | None:
    """Return the documents of a data set, from the given folder or from ``documents`` in `folder`.

    The result is None if no folder is given and there is no ``documents``.

    Args:
        folder: The folder of the data set.
        documents: The folder of the documents, or None.
        follow_links: Whether to follow links that lead out of the folder of the documents.

    Raises:
        ConfigurationError: If `follow_links` is neither true nor false.
        DataError: If the given folder does not exist.
    """
    if documents is not None:
        return some_library(existing_folder(documents), follow_links)
    places = (folder / "documents", folder / "data" / "documents")
    return next((some_library(each, follow_links) for each in places if each.is_dir()), None)


def some_library(folder: Path, follow_links: bool | str) -> Library:
    """Return the documents of a folder; `follow_links` is an option as in `library_of`."""
    from visenv.documents.library import FolderLibrary

    known = {"true": True, "false": False}.get(str(follow_links).lower())
    if known is None:
        raise ConfigurationError(f"follow_links must be true or false, got {follow_links!r}.")
    return FolderLibrary(folder, follow_links=known)


def document_of(row: Mapping[str, Any], library: Library | None) -> str:
    """Return the name of the document for the ``doc_id`` of a row.

    Raises:
        DataError: If the row has no ``doc_id``, or the document is missing or cannot be opened.
    """
    name = text_of(row, "doc_id")
    if library is None:
        raise DataError(f"the row needs the document {name!r}, but there is no folder of documents")
    return opened(library, name).name


def opened(library: Library, name: str) -> Document:
    """Return a document of a library; an error tells which links were not followed.

    Raises:
        DataError: If the document is missing or cannot be opened.
    """
    try:
        return library.document(name)
    except DataError as error:
        note = getattr(library, "note", "")
        raise DataError(f"{error} {note}" if note else str(error)) from error
