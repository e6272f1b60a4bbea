"""Reads the text that a page of a PDF shows beside its text layer: form fields and free text."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

_MOST_NOTES = 10_000
_MOST_BYTES = 1 << 20


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
