"""Defines a library of the documents in a folder: PDF files and page images."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

from visenv.documents.document import (
    RENDERED_BYTES,
    Document,
    RenderedDocument,
    RenderedPages,
    unknown_document,
)
from visenv.documents.page_images import SUFFIXES, TEXT_SUFFIX, PageImages, page_number
from visenv.errors import DataError
from visenv.files import leads_inside, output_folder, replacing

PAGE_SIDE = 2048
"""Longest side of a written page, pixels."""


class FolderLibrary:
    """Holds the documents of a folder, by name.

    ``report.pdf`` is the document ``report``. ``report_1.jpg``, ``report_2.jpg``, … are also the
    pages of ``report`` (ARM-Thinker's layout; also .jpeg, .png, .webp), and so are the numbered
    images in a subfolder ``report``. If several of them have one name, the PDF is used, otherwise
    the subfolder. A name may end with ``.pdf``. Page images may have text files with the same stem
    (``report_1.txt``).

    The folder is read once, when the first document is requested. Names are looked up in the result
    and never become part of a path. Names that cannot be printed are omitted, and so are links to
    files outside of the folder, because a folder from somebody else can contain links to your
    files. The links of a download from the hub are followed (`visenv.files.leads_inside`).

    The library can be pickled, without its caches.

    Args:
        root: The folder.
        follow_links: Whether to follow all links, for a folder of links that you made.
        rendered_bytes: Maximum number of bytes of rendered pages in the cache. Documents themselves
            need little memory, because few PDF files are open at a time.

    Raises:
        DataError: If the folder does not exist.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        follow_links: bool = False,
        rendered_bytes: int = RENDERED_BYTES,
    ) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise DataError(f"There is no folder of documents at {str(root)!r}.")
        self._follow_links = follow_links
        self._left_out: list[str] = []
        self._rendered = RenderedPages(rendered_bytes)
        self._documents: dict[str, Document] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of all documents, sorted."""
        return sorted(self._makers)

    def document(self, name: str) -> Document:
        """Return the document of that name; it is the same object each time.

        Raises:
            DataError: If there is no such document, or it cannot be opened; the message suggests
                names.
        """
        known = name if name in self._makers else name.removesuffix(".pdf")
        if known not in self._makers:
            raise DataError(unknown_document(name, self._makers))
        if known not in self._documents:
            document = self._makers[known]()
            len(document)  # raises now if the document cannot be opened
            self._documents[known] = RenderedDocument(document, self._rendered)
        return self._documents[known]

    # ------------------------------------------------------------------ content of the folder

    @cached_property
    def _makers(self) -> dict[str, Callable[[], Document]]:
        entries = list(self._inside(self.root))
        found: dict[str, Callable[[], Document]] = {}
        for name, files in _series(entries).items():
            found[name] = partial(PageImages.from_files, name, files)
        for path in entries:
            if path.is_dir():
                found[path.name] = partial(self._open_folder, path)
        for path in entries:
            if path.suffix.lower() == ".pdf" and path.is_file():
                found[path.stem] = partial(_open_pdf, path)
        return found

    def _open_folder(self, folder: Path) -> Document:
        return PageImages.from_files(folder.name, filter(_is_page, self._inside(folder)))

    def _inside(self, folder: Path) -> Iterator[Path]:
        """Return the entries of the folder, without hidden ones and links to the outside."""
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                path = Path(entry.path)
                if not entry.name.isprintable() or entry.name.startswith("."):
                    continue
                is_foreign_link = entry.is_symlink() and not self._follow_links
                if is_foreign_link and not leads_inside(self.root, path):
                    self._left_out.append(entry.name)
                else:
                    yield path

    @property
    def note(self) -> str:
        """Return a sentence about the links that were left out, ``""`` if there are none.

        The errors of `document` do not contain it, because policies read them.
        """
        _ = self._makers  # reads the folder
        if not self._left_out:
            return ""
        return (
            f"{len(self._left_out)} links lead out of the folder and are not followed, for example "
            f"{self._left_out[0]!r}: name the folder of the files, or, if you made the links, set "
            "follow_links=true."
        )


def _is_page(path: Path) -> bool:
    return path.suffix.lower() in (*SUFFIXES, TEXT_SUFFIX)


def _series(paths: list[Path]) -> dict[str, list[Path]]:
    """Return the files of the pages ``name_1``, ``name_2``, … by name."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in filter(_is_page, paths):
        numbered = page_number(path.stem)
        if numbered and numbered[0].endswith("_"):
            found[numbered[0][:-1]].append(path)
    return found


def _open_pdf(path: Path) -> Document:
    from visenv.documents.pdf import PdfDocument

    return PdfDocument.open(path)


def write_pages(document: Document, folder: Path, long_side: int = PAGE_SIDE) -> list[Path]:
    """Write the pages of a document as ``<name>_<page>.png``, unless they exist.

    Return their files.

    The text layer of a page, if there is one, is written to a file with the same name and ``.txt``.

    Args:
        document: The document.
        folder: Folder of the pages.
        long_side: Longest side of a page, pixels.

    Raises:
        DataError: If the name of the document is not a valid file name, or a page cannot be
            rendered.
    """
    name = document.name
    if not name or Path(name).name != name or not name.isprintable() or name.startswith("."):
        raise DataError(f"the name of the document cannot be that of a file: {name!r:.80}")
    output_folder(folder)
    files = [folder / f"{name}_{page}.png" for page in range(1, len(document) + 1)]
    for page, file in enumerate(files, start=1):
        text = document.page_text(page)
        if text and not file.with_suffix(TEXT_SUFFIX).exists():
            with replacing(file.with_suffix(TEXT_SUFFIX)) as partial:
                partial.write_text(text, encoding="utf-8", errors="replace")
        if not file.exists():
            _write_page(document, page, file, long_side)
    return files


def _write_page(document: Document, page: int, file: Path, long_side: int) -> None:
    import PIL.Image

    image = PIL.Image.fromarray(document.page_image(page, long_side).pixels)
    with replacing(file) as partial:
        image.save(partial, "PNG")
