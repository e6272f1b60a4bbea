"""Reads and renders PDF files with PDFium, in a child process."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .target import Arrays, ContentError, DecoderTarget, OpenSources

_MOST_NOTES = 10_000

_MOST_BYTES = 1 << 20

_MOST_OPEN = 8

_PASSWORD_NEEDED = 4  # FPDF_ERR_PASSWORD

_REPLACED = {0: None, 0x0D: None, 0xFFFE: "\x02"}
"""Replacements: PDFium ends lines with CR LF, and has two characters for a hyphen at the end of a
line, whose next line it appends."""

_BROKEN_WORD = re.compile(r"(\w+(?:-\w+)*)\x02(\w+)")

Reply = tuple[dict[str, Any], dict[str, Any]]


def notes_of(page: Any, form: Any) -> Iterator[str]:
    """Yield the values of text fields and lists, and the contents of free text on a page.

    Hidden annotations, buttons and comments are left out, because the image of the page lacks their
    text.

    Args:
        page: A page of pypdfium2.
        form: The form environment of its document, or None.
    """
    import pypdfium2.raw as pdfium

    for number in range(min(_MOST_NOTES, pdfium.FPDFPage_GetAnnotCount(page))):
        note = pdfium.FPDFPage_GetAnnot(page, number)
        if note:
            text = _text_of(note, form)
            pdfium.FPDFPage_CloseAnnot(note)
            if text.strip():
                yield text


def _text_of(note: Any, form: Any) -> str:
    """Return the text of a field or of free text, ``""`` for any other annotation."""
    import pypdfium2.raw as pdfium

    if pdfium.FPDFAnnot_GetFlags(note) & (
        pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
    ):
        return ""
    kind = pdfium.FPDFAnnot_GetSubtype(note)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _string(lambda *to: pdfium.FPDFAnnot_GetStringValue(note, b"Contents", *to))
    if form is None or kind != pdfium.FPDF_ANNOT_WIDGET:
        return ""
    if pdfium.FPDFAnnot_GetFormFieldType(form, note) not in (
        pdfium.FPDF_FORMFIELD_TEXTFIELD,
        pdfium.FPDF_FORMFIELD_COMBOBOX,
        pdfium.FPDF_FORMFIELD_LISTBOX,
    ):
        return ""
    return _string(lambda *to: pdfium.FPDFAnnot_GetFormFieldValue(form, note, *to))


def _string(read: Any) -> str:
    """Return the text that a function of PDFium writes, UTF-16 with a final 0."""
    import pypdfium2.raw as pdfium

    length = min(_MOST_BYTES, read(None, 0))
    if length < 4:
        return ""
    buffer = (ctypes.c_char * length)()
    read(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return str(buffer.raw.decode("utf-16-le", "replace")).partition("\0")[0]


class PageError(ContentError):
    """Raised if a page cannot be read; the text is the end of a sentence about the page."""

    key = "page_problem"


class PdfTarget(DecoderTarget):
    """Keeps the documents that were used last open.

    Every request has ``key`` and ``path`` (`OpenSources.get`). The result of a page that cannot be
    read is ``{"page_problem": text}``.
    """

    def start(self, options: Any) -> None:
        """Import PDFium."""
        import pypdfium2

        self._pdfium: Any = pypdfium2
        self._documents = OpenSources(_MOST_OPEN, self._opened, lambda document: document.close())
        self._sent: Any = None

    def pages(self, request: Any, arrays: Arrays) -> Reply:
        """Return the number of ``pages``."""
        return {"pages": len(self._documents.get(request, arrays))}, {}

    def text(self, request: Any, arrays: Arrays) -> Reply:
        """Return the array ``text`` in UTF-8: the text layer of a page, as far as it is shown.

        The values of form fields and free text follow.

        The request has ``page`` and ``most``, the most characters.
        """
        document = self._documents.get(request, arrays)
        with self._page(document, request["page"]) as page:
            layer = page.get_textpage()
            count, most = layer.count_chars(), request["most"]
            if count > most:
                raise PageError(f"has a text of {count:,} characters, at most {most:,} are read")
            text = _whole_words(_shown_text(layer).translate(_REPLACED))
            notes = (note.translate(_REPLACED) for note in notes_of(page, document.formenv))
            text = "\n".join(each for each in (text, *notes) if each)[:most]
        return {}, {"text": memoryview(text.encode("utf-8", "surrogatepass"))}

    def image(self, request: Any, arrays: Arrays) -> Reply:
        """Return a rendered page: ``width``, ``height``, ``stride`` and the array ``pixels``.

        The request has ``page``, ``long_side`` and ``most``, the most pixels. A row of pixels, RGB,
        has `stride` bytes.
        """
        self._sent = None  # the next bitmap uses the same memory
        document, number = self._documents.get(request, arrays), request["page"]
        scale = _scale(self._size(document, number), request["long_side"], request["most"])
        with self._page(document, number) as page:
            bitmap = page.render(
                scale=scale,
                rev_byteorder=True,
                limit_image_cache=True,
                # PDFium allocates the bitmap: pypdfium2 never destroys bitmaps that use other
                # memory.
                bitmap_maker=self._pdfium.PdfBitmap.new_foreign,
            )
        self._sent = bitmap  # its memory is sent after this method has returned
        if bitmap.n_channels != 3:
            raise PageError(f"was rendered with {bitmap.n_channels} channels")
        facts = {"width": bitmap.width, "height": bitmap.height, "stride": bitmap.stride}
        return facts, {"pixels": memoryview(bitmap.buffer)}

    def _opened(self, source: str | memoryview) -> Any:
        if isinstance(source, memoryview):
            source = source.tobytes()  # type: ignore[assignment]
        try:
            document = self._pdfium.PdfDocument(source)
        except self._pdfium.PdfiumError as error:
            if error.err_code == _PASSWORD_NEEDED:
                raise ContentError("is encrypted; save a copy without a password") from error
            raise ContentError(f"is not a PDF that can be read: {_text(error)}") from error
        except OSError as error:
            raise ContentError(f"cannot be opened: {error}") from error
        document.init_forms()  # otherwise the content of form fields would be missing
        return document

    @contextmanager
    def _page(self, document: Any, number: int) -> Iterator[Any]:
        """Yield a page and close it at the end."""
        _check(document, number)
        try:
            page = document[number - 1]
            try:
                yield page
            finally:
                page.close()
        except (self._pdfium.PdfiumError, ValueError) as error:
            raise PageError(f"cannot be read: {_text(error)}") from error

    def _size(self, document: Any, number: int) -> tuple[float, float]:
        _check(document, number)
        try:
            width, height = document.get_page_size(number - 1)
        except self._pdfium.PdfiumError as error:
            raise PageError(f"cannot be read: {_text(error)}") from error
        if not (0 < width < math.inf and 0 < height < math.inf):
            raise PageError(f"has no area: {width} x {height} points")
        return width, height


def _shown_text(layer: Any) -> str:
    """Return the text of a page without text outside of its crop box, which no image shows."""
    text, shown = layer.get_text_range(), layer.get_text_bounded()
    # Both have the same text, but blanks may differ; the first is preferred if nothing is hidden.
    return str(text if _count(text) == _count(shown) else shown)


def _count(text: str) -> int:
    return sum(map(str.isalnum, text))


def _whole_words(text: str) -> str:
    """Join words that a hyphen breaks at the end of a line; keep the hyphens of compounds.

    A hyphen is one of a compound if the word has another one, if the page has the compound
    elsewhere, or if the next line begins with a capital letter or a digit.
    """
    rest = text.casefold()

    def join(broken: re.Match[str]) -> str:
        first, second = broken.groups()
        compound = f"{first}-{second}"
        if "-" in first or not second[0].islower() or compound.casefold() in rest:
            return compound
        return first + second

    return _BROKEN_WORD.sub(join, text).replace("\x02", "-")


def _scale(size: tuple[float, float], long_side: int, most: int) -> float:
    """Return the pixels per point.

    Half a pixel is subtracted, because PDFium rounds sides up.
    """
    if long_side < 1:
        raise PageError(f"cannot have a long side of {long_side} pixels")
    pixels = long_side * max(1, long_side * min(size) / max(size))
    if pixels > most:
        raise PageError(f"would have {pixels:,.0f} pixels, at most {most:,}")
    return (long_side - 0.5) / max(size)


def _check(document: Any, number: int) -> None:
    if not 1 <= number <= len(document):
        raise PageError(f"does not exist: the document has {len(document)}")


def _text(error: Exception) -> str:
    return str(error).rstrip(".")
