"""Writes a document as page images with texts, in files that `FolderLibrary` can read."""

from __future__ import annotations

from pathlib import Path

from visenv.documents.document import Document
from visenv.documents.page_images import TEXT_SUFFIX
from visenv.errors import DataError
from visenv.files import output_folder, replacing

PAGE_SIDE = 2048
"""Longest side of a written page, pixels."""


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
