"""Defines a document whose pages are image files, numbered in their names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from visenv.decoding.files import read_regular, read_text
from visenv.decoding.pictures import MOST_BYTES
from visenv.documents.overview import shrink_page
from visenv.errors import DataError
from visenv.types import Image

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
"""File types of page images, in order of preference if a page has several files."""

TEXT_SUFFIX = ".txt"
"""Suffix of the text file of a page, which is the page's text layer."""

_NUMBERED = re.compile(r"(?P<series>.*?)(?P<number>\d{1,9})", re.DOTALL)


def page_number(stem: str) -> tuple[str, int] | None:
    """Return the series and the page of a file by its stem: ``"a_07"`` is page 7 of ``"a_"``."""
    match = _NUMBERED.fullmatch(stem)
    return (match["series"], int(match["number"])) if match else None


class PageImages:
    """Represents a document of image files, optionally with text files.

    Args:
        name: Name of the document in tools and prompts.
        images: Image file by page number.
        texts: Text file (UTF-8) by page number.

    Raises:
        DataError: If the numbers are not page numbers: there is a page 0, or less than half of the
            pages up to the last one have an image (``report_2024.png`` alone is not a document of
            2024 pages).
    """

    def __init__(
        self, name: str, images: Mapping[int, Path], texts: Mapping[int, Path] | None = None
    ) -> None:
        self.name = name
        self._images = dict(images)
        self._texts = dict(texts or {})
        self._pages = max(self._images, default=0)
        if 0 in self._images:
            raise DataError(
                f"Page images of {name!r} are numbered from 0 ({self._images[0].name}); page "
                "numbers must start at 1: rename them."
            )
        if not self._images or 2 * len(self._images) < self._pages:
            raise DataError(
                f"{name!r} is not a document: only {len(self._images)} of the pages up to "
                f"{self._pages} have an image."
            )

    @classmethod
    def from_files(cls, name: str, files: Iterable[Path]) -> PageImages:
        """Return a document of files whose stems end in their page number.

        Raises:
            DataError: As the class does, and if two files have the same page number.
        """
        images: dict[int, Path] = {}
        texts: dict[int, Path] = {}
        for path in sorted(files, key=_preference, reverse=True):
            numbered = page_number(path.stem)
            if numbered is None:
                continue
            page = numbered[1]
            kind = texts if path.suffix.lower() == TEXT_SUFFIX else images
            if page in kind and kind[page].stem != path.stem:
                raise DataError(
                    f"{name!r} has two files for page {page}: {kind[page].name} and {path.name}."
                )
            kind[page] = path  # the preferred type comes last
        return cls(name, images, texts)

    @cached_property
    def sha256(self) -> str:
        """Return the hash of the numbers and bytes of all files, hexadecimal.

        Raises:
            DataError: If a file cannot be read.
        """
        digest = hashlib.sha256()
        for files in (self._images, self._texts):
            for page in sorted(files):
                digest.update(f"{page} {self._hash_of(files[page])}\n".encode())
            digest.update(b"\n")
        return digest.hexdigest()

    def _hash_of(self, path: Path) -> str:
        try:
            return hashlib.sha256(read_regular(path)).hexdigest()
        except OSError as error:
            raise DataError(f"{path.name} of {self.name!r} cannot be read: {error}") from error

    def __len__(self) -> int:
        return self._pages

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page, shrunk (bicubic) to at most `long_side`; the full image is not cached.

        Raises:
            DataError: If there is no such page, or its file cannot be decoded.
        """
        self._check(page)
        if page not in self._images:
            raise DataError(
                f"{self.name!r} has no image of page {page}: add the file, or number the pages "
                "without gaps."
            )
        path = self._images[page]
        try:
            encoded = read_regular(path, MOST_BYTES)
            image = Image.from_bytes(encoded, path.name)  # errors must not name folders
            return shrink_page(Image.from_pixels(image.pixels), long_side)
        except (DataError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"Page {page} of {self.name!r} cannot be shown: {reason}") from error

    def page_text(self, page: int) -> str:
        """Return the text file of the page, ``""`` if there is none.

        Raises:
            DataError: If there is no such page, or its text cannot be read.
        """
        self._check(page)
        if page not in self._texts:
            return ""
        try:
            return read_text(self._texts[page])
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"The text of page {page} of {self.name!r} cannot be read: {reason}"
            raise DataError(message) from error

    def _check(self, page: int) -> None:
        if not 1 <= page <= self._pages:
            raise DataError(f"{self.name!r} has pages 1 to {self._pages}, there is no page {page}.")


def _preference(path: Path) -> int:
    suffix = path.suffix.lower()
    return SUFFIXES.index(suffix) if suffix in SUFFIXES else len(SUFFIXES)
