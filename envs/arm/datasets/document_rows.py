"""Finds the documents of a data set, and the document of each row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.data.rows import existing_folder, text_of
from visenv.documents import Document, Library
from visenv.errors import ConfigurationError, DataError


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
