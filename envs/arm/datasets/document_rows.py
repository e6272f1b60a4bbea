"""Finds the documents of a data set, and the document of each row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.data.rows import existing_folder, text_of
from visenv.documents import Library
from visenv.errors import DataError


def library_of(folder: Path, documents: str | Path | None) -> Library | None:
    """Return the documents of a data set, from the given folder or from ``documents`` in `folder`.

    The result is None if no folder is given and there is no ``documents``.

    Raises:
        DataError: If the given folder does not exist.
    """
    from visenv.documents.library import FolderLibrary

    if documents is not None:
        return FolderLibrary(existing_folder(documents))
    places = (folder / "documents", folder / "data" / "documents")
    return next((FolderLibrary(place) for place in places if place.is_dir()), None)


def document_of(row: Mapping[str, Any], library: Library | None) -> str:
    """Return the name of the document for the ``doc_id`` of a row.

    Raises:
        DataError: If the row has no ``doc_id``, or the document is missing or cannot be opened.
    """
    name = text_of(row, "doc_id")
    if library is None:
        raise DataError(f"the row needs the document {name!r}, but there is no folder of documents")
    return library.document(name).name
