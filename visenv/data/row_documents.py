"""Defines the library of the documents that rows name by their paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from visenv.data.cells import find_file
from visenv.documents.document import Document, RenderedDocument, RenderedPages, unknown_document
from visenv.documents.page_images import PageImages
from visenv.documents.pdf import PdfDocument
from visenv.errors import DataError
from visenv.files import is_relative


class RowDocuments:
    """Holds documents that are added by their paths: PDF files, or folders of page images.

    The name of a document is the name of its file without ``.pdf``, or that of its folder. The file
    names of page images end with the number of the page.

    Args:
        folders: The folders in which paths are looked up.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._paths: dict[str, Path] = {}
        self._opened: dict[str, Document] = {}
        self._rendered = RenderedPages()

    def add(self, written: str) -> str:
        """Add the document at a path, and return its name; the document is not opened yet.

        Raises:
            DataError: If there is no such PDF file or folder, or another document has its name.
        """
        path = self._find(written)
        name = path.name if path.is_dir() else path.stem
        if self._paths.setdefault(name, path) != path:
            raise DataError(f"{path} and {self._paths[name]} are two documents with the same name")
        return name

    def document(self, name: str) -> Document:
        """Return the document of that name; it is the same object each time.

        Raises:
            DataError: If there is no such document, or it cannot be opened.
        """
        known = name if name in self._paths else name.removesuffix(".pdf")
        if known not in self._paths:
            raise DataError(unknown_document(name, self._paths))
        if known not in self._opened:
            document = _open(known, self._paths[known])
            len(document)  # raises now if the document cannot be opened
            self._opened[known] = RenderedDocument(document, self._rendered)
        return self._opened[known]

    def _find(self, written: str) -> Path:
        if is_relative(written):
            for folder in self._folders:
                if Path(folder, written).is_dir():
                    return Path(folder, written)
        path = Path(find_file(written, self._folders))
        if path.suffix.lower() != ".pdf":
            raise DataError(f"a document must be a PDF file or a folder of pages, got {written!r}")
        return path


def _open(name: str, path: Path) -> Document:
    if path.is_dir():
        return PageImages.from_files(name, path.iterdir())
    return PdfDocument.open(path)
