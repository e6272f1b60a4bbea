"""Renders and reads PDF files with PDFium (pypdfium2).

PDFium runs in a child process with limits (`visenv.decoding`), because a file of a few hundred
bytes can let it fill the memory, or crash. A `PdfDocument` contains only a name and a source; the
child keeps a few documents open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.child_process.host import ChildLimits
from visenv.decoding.decoder import DecoderError, DecoderProcess, Source
from visenv.decoding.files import read_regular
from visenv.errors import DataError, FileRefusedError
from visenv.types import MAX_PIXELS, Image

MOST_CHARACTERS = 10_000_000
"""Maximum number of characters of the text of a page."""

PDFIUM = DecoderProcess(
    "PDFium",
    "visenv.decoding.child.pdf:PdfTarget",
    ChildLimits(call_s=120.0, memory_bytes=2 * 2**30, data_bytes=3 * 2**29, processor_s=30.0),
)
"""The decoder of PDF files. The largest image of a page needs 0.6 GiB."""


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
        self._content: Source | None = None

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
            content = source if isinstance(source, bytes) else read_regular(source)
        except (OSError, ValueError) as error:  # ValueError: the name contains NUL
            raise DataError(f"The document {self.name!r} cannot be opened: {error}.") from error
        return hashlib.sha256(content).hexdigest()

    def __len__(self) -> int:
        """Return the number of pages, at least 1.

        Raises:
            DataError: If it cannot be opened: missing, empty, encrypted, truncated, not a PDF.
        """
        result, _ = self._call("pages", None)
        return int(result["pages"])

    def page_image(self, page: int, long_side: int) -> Image:
        """Return the page as an image whose longer side is `long_side` pixels.

        Raises:
            DataError: If there is no such page, it cannot be rendered within the limits of memory
                and time, or the image would have more than `MAX_PIXELS` pixels; the message names
                document and page.
        """
        facts, arrays = self._call("image", page, long_side=long_side, most=MAX_PIXELS)
        width, height, stride = (facts[name] for name in ("width", "height", "stride"))
        rows = np.frombuffer(arrays["pixels"], np.uint8).reshape(height, stride)
        pixels = rows[:, : 3 * width].reshape(height, width, 3)  # [height, width, 3]
        return Image.from_pixels(np.ascontiguousarray(pixels))

    def page_text(self, page: int) -> str:
        """Return the page's text layer in reading order, ``""`` if it has none.

        The values of form fields and free text, which the image shows too, follow.

        Raises:
            DataError: If there is no such page, or it cannot be read within the limits; the message
                names document and page.
        """
        _, arrays = self._call("text", page, most=MOST_CHARACTERS)
        return str(arrays["text"], "utf-8", "surrogatepass")

    def _call(
        self, method: str, page: int | None, **request: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Call a method of `visenv.decoding.child.pdf.PdfTarget`."""
        of_page = f"Page {page} of the document" if page is not None else "The document"
        try:
            result, arrays = PDFIUM.call(method, self._current(), page=page, **request)
        except DecoderError as error:
            raise DataError(f"{of_page} {self.name!r} {error}.") from error
        if "problem" in result:
            raise DataError(f"The document {self.name!r} {result['problem']}.")
        if "page_problem" in result:
            raise DataError(f"{of_page} {self.name!r} {result['page_problem']}.")
        return result, arrays

    def _current(self) -> Source:
        """Return the source in its current state."""
        source = self._source
        try:
            if isinstance(source, bytes):
                size = len(source)
                if self._content is None:
                    self._content = Source(hashlib.sha256(source).hexdigest(), None, source)
                found = self._content
            else:
                found, size = Source.of_file(source), source.stat().st_size
        except FileRefusedError as error:
            raise DataError(f"The document {self.name!r} is not a file: {error}") from error
        except (OSError, ValueError) as error:  # ValueError: the name contains NUL
            raise DataError(f"The document {self.name!r} cannot be opened: {error}.") from error
        if not size:
            raise DataError(f"The document {self.name!r} is not a PDF: the file has 0 bytes.")
        return found

    @override
    def __repr__(self) -> str:
        return f"PdfDocument({self.name!r})"
