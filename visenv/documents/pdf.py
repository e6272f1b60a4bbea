"""Renders and reads PDF files with PDFium (pypdfium2).

PDFium has global state and is not thread-safe: all calls, also those that close documents, hold one
lock. A `PdfDocument` contains only a name and a source. This module keeps the handles, a few at a
time, so that many documents need the memory of a few, and no garbage collector closes a handle in
another thread.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from cachetools import LRUCache
from typing_extensions import override

from visenv.errors import DataError
from visenv.types import Image, Pixels
from visenv.types.image import MAX_PIXELS

if TYPE_CHECKING:
    import pypdfium2

_MOST_OPEN = 8
_PASSWORD_NEEDED = 4  # FPDF_ERR_PASSWORD

_REPLACED = {0: None, 0x0D: None, 0x02: "-", 0xFFFE: "-"}
"""Replacements: PDFium ends lines with CR LF, and has two characters for a hyphen at a line's
end."""


class _FileState(NamedTuple):
    """Describes the current state of a file; if it changes, the file is opened again."""

    path: str
    changed: int
    size: int


class _OpenFiles(LRUCache["_FileState | bytes", "pypdfium2.PdfDocument"]):
    """Caches the handles used last; a handle that leaves the cache is closed."""

    @override
    def popitem(self) -> tuple[_FileState | bytes, pypdfium2.PdfDocument]:
        """Drop and close the least recently used handle."""
        source, handle = super().popitem()
        handle.close()
        return source, handle


class _Handles:
    """Holds the open documents of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._open = _OpenFiles(_MOST_OPEN)
        self._closes_at_exit = False
        # A fork while another thread is in PDFium would break PDFium in the child, and a file that
        # two processes read by one descriptor has one position for both.
        os.register_at_fork(
            before=self.lock.acquire,
            after_in_parent=self.lock.release,
            after_in_child=self._after_in_child,
        )

    def get(self, source: _FileState | bytes) -> pypdfium2.PdfDocument:
        """Return the handle, opened if necessary.

        The caller must hold the lock while it uses the handle.

        Raises:
            DataError: If PDFium cannot open the file; the message is the end of a sentence.
        """
        if source not in self._open:
            opened = _open(source)
            if not self._closes_at_exit:
                # Registered after PDFium's own exit handler, so that it runs first: PDFium reports
                # documents that are still open.
                atexit.register(self.close)
                self._closes_at_exit = True
            self._open[source] = opened
        return self._open[source]

    def close(self) -> None:
        """Close all handles."""
        with self.lock:
            while self._open:
                self._open.popitem()

    def _after_in_child(self) -> None:
        self.close()
        self.lock.release()


_HANDLES = _Handles()


class PdfDocument:
    """Represents a PDF as a `Document`; the file is opened on first use.

    It is pickled as its path or its bytes. A file that changes is read again.

    Args:
        source: Path of the file, or its content.
        name: Name of the document in tools and prompts.
    """

    def __init__(self, source: Path | bytes, name: str) -> None:
        self.name = name
        self._source = source

    @classmethod
    def open(cls, path: str | Path, name: str | None = None) -> PdfDocument:
        """Open the PDF at `path`; its default name is the file name without ``.pdf``."""
        return cls(Path(path), Path(path).stem if name is None else name)

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> PdfDocument:
        """Return a document of PDF data in memory."""
        return cls(bytes(data), name)

    @property
    def sha256(self) -> str:
        """Return the hash of the file's bytes, hexadecimal.

        Raises:
            DataError: If the file cannot be read.
        """
        source = self._source
        try:
            content = source if isinstance(source, bytes) else source.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: the name contains NUL
            raise DataError(f"The document {self.name!r} cannot be opened: {error}.") from error
        return hashlib.sha256(content).hexdigest()

    def __len__(self) -> int:
        """Return the number of pages, at least 1.

        Raises:
            DataError: If it cannot be opened: missing, empty, encrypted, truncated, not a PDF.
        """
        with self._opened() as handle:
            return len(handle)

    def page_size(self, page: int) -> tuple[float, float]:
        """Return ``(width, height)`` of the page as displayed, in points of 1/72 inch.

        Raises:
            DataError: If there is no such page, or it has no area.
        """
        with self._opened() as handle:
            return self._size(handle, page)

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page as an image whose longer side is `long_side` pixels.

        Raises:
            DataError: If there is no such page, it cannot be rendered, or the image would have more
                than `MAX_PIXELS` pixels; the message names document and page.
        """
        with self._opened() as handle:
            scale = self._scale(self._size(handle, page), page, long_side)
            with self._page(handle, page) as opened:
                return Image.from_pixels(_render(opened, scale))

    def page_text(self, page: int) -> str:
        """Return the page's text layer in reading order, ``""`` if it has none.

        Raises:
            DataError: If there is no such page, or it cannot be read; the message names document
                and page.
        """
        with self._opened() as handle, self._page(handle, page) as opened:
            text: str = opened.get_textpage().get_text_range()
        return text.translate(_REPLACED)

    @contextmanager
    def _opened(self) -> Iterator[pypdfium2.PdfDocument]:
        """Yield the handle, with the lock held."""
        with _HANDLES.lock:
            try:
                source = self._source
                state = source if isinstance(source, bytes) else _state(source)
                handle = _HANDLES.get(state)
            except DataError as error:
                raise DataError(f"The document {self.name!r} {error}.") from error
            yield handle

    @contextmanager
    def _page(self, handle: pypdfium2.PdfDocument, page: int) -> Iterator[pypdfium2.PdfPage]:
        """Yield a page and close it at the end; errors contain the page number."""
        import pypdfium2

        self._check(handle, page)
        try:
            opened = handle[page - 1]
            try:
                yield opened
            finally:
                opened.close()
        except (pypdfium2.PdfiumError, ValueError, MemoryError) as error:
            raise self._unreadable(page, error) from error

    def _size(self, handle: pypdfium2.PdfDocument, page: int) -> tuple[float, float]:
        import pypdfium2

        self._check(handle, page)
        try:
            width, height = handle.get_page_size(page - 1)
        except pypdfium2.PdfiumError as error:
            raise self._unreadable(page, error) from error
        if not (0 < width < np.inf and 0 < height < np.inf):
            raise self._problem(page, f"has no area: {width} x {height} points")
        return width, height

    def _scale(self, size: tuple[float, float], page: int, long_side: int) -> float:
        """Return the pixels per point.

        Half a pixel is subtracted, because PDFium rounds sides up.
        """
        if long_side < 1:
            raise self._problem(page, f"cannot have a long side of {long_side} pixels")
        pixels = long_side * max(1, long_side * min(size) / max(size))
        if pixels > MAX_PIXELS:
            raise self._problem(page, f"would have {pixels:,.0f} pixels, at most {MAX_PIXELS:,}")
        return (long_side - 0.5) / max(size)

    def _check(self, handle: pypdfium2.PdfDocument, page: int) -> None:
        if not 1 <= page <= len(handle):
            raise self._problem(page, f"does not exist: the document has {len(handle)}")

    def _unreadable(self, page: int, error: Exception) -> DataError:
        return self._problem(page, f"cannot be read: {_said(error)}")

    def _problem(self, page: int, problem: str) -> DataError:
        return DataError(f"Page {page} of the document {self.name!r} {problem}.")

    @override
    def __repr__(self) -> str:
        return f"PdfDocument({self.name!r})"


def _render(page: pypdfium2.PdfPage, scale: float) -> Pixels:
    """Return RGB pixels, copied from a bitmap that is destroyed on return.

    PDFium allocates the bitmap: pypdfium2 never destroys bitmaps that use other memory.
    """
    from pypdfium2 import PdfBitmap

    bitmap = page.render(
        scale=scale, rev_byteorder=True, limit_image_cache=True, bitmap_maker=PdfBitmap.new_foreign
    )
    return np.array(bitmap.to_numpy(), np.uint8)


def _said(error: Exception) -> str:
    return str(error).rstrip(".")


def _state(path: Path) -> _FileState:
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: the name contains NUL
        raise DataError(f"cannot be opened: {error}") from error
    if not path.is_file():
        raise DataError(f"is not a file: {path}")
    return _FileState(str(path.absolute()), found.st_mtime_ns, found.st_size)


def _open(source: _FileState | bytes) -> pypdfium2.PdfDocument:
    import pypdfium2

    if not (source if isinstance(source, bytes) else source.size):
        raise DataError("is empty")
    try:
        handle = pypdfium2.PdfDocument(source if isinstance(source, bytes) else source.path)
    except pypdfium2.PdfiumError as error:
        if error.err_code == _PASSWORD_NEEDED:
            raise DataError("is encrypted; save a copy without a password") from error
        raise DataError(f"is not a PDF that can be read: {_said(error)}") from error
    except OSError as error:
        raise DataError(f"cannot be opened: {error}") from error
    handle.init_forms()  # otherwise the content of form fields would be missing
    return handle
