"""Tests that form fields and free text, which the image of a page shows, are part of its text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from visenv.documents.pdf import PdfDocument

pytestmark = pytest.mark.component("pypdfium2", "reportlab")


def page(draw: Callable[[Any], None]) -> PdfDocument:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(400, 600), invariant=True)
    canvas.drawString(40, 550, "Name:")
    draw(canvas)
    canvas.showPage()
    canvas.save()
    return PdfDocument.from_bytes(buffer.getvalue(), "form")


def field(canvas: Any, value: str, flags: str = "print") -> None:
    canvas.acroForm.textfield(
        name=value, value=value, x=40, y=400, width=300, height=40, annotationFlags=flags
    )


def choice(canvas: Any) -> None:
    options = ["Riga", "Porto"]
    canvas.acroForm.choice(name="town", value="Porto", options=options, x=40, y=400, width=90)


def free_text(canvas: Any) -> None:
    canvas.freeTextAnnotation("Grüße 数", DA="/Helv 12 Tf 0 g", Rect=(40, 300, 300, 340))


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda canvas: field(canvas, "Ada Lovelace"), "Name:\nAda Lovelace"),
        (choice, "Name:\nPorto"),
        (free_text, "Name:\nGrüße 数"),
        (lambda canvas: field(canvas, "unseen", "hidden"), "Name:"),
        (lambda canvas: canvas.acroForm.checkbox(name="yes", checked=True, x=40, y=400), "Name:"),
        (lambda canvas: canvas.textAnnotation("a comment", Rect=(40, 300, 60, 320)), "Name:"),
        (lambda canvas: field(canvas, ""), "Name:"),
    ],
)
def test_text_that_the_image_of_a_page_shows_is_its_text(
    draw: Callable[[Any], None], text: str
) -> None:
    assert page(draw).page_text(1) == text


def test_text_of_fields_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    from visenv.documents import pdf

    monkeypatch.setattr(pdf, "MOST_CHARACTERS", 12)
    assert page(lambda canvas: field(canvas, "Ada Lovelace")).page_text(1) == "Name:\nAda Lo"
