"""Draws the outline of a report: every page with its title and layout, but without its content.

An overview of a report shows the outline. It has lines of equal length in place of text, and empty
tables and charts. Its pixels therefore do not reveal, at any size, the answer to a question.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from visenv.worlds.reports.charts import HEIGHT as CHART_HEIGHT
from visenv.worlds.reports.charts import axes
from visenv.worlds.reports.drawing import (
    HEIGHT,
    INNER,
    MARGIN,
    WIDTH,
    draw_cover,
    draw_footer,
    draw_heading,
    draw_table,
)
from visenv.worlds.reports.report import Bars, Curve, Exhibit, Register, Report, Section

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas

_LINES_BEFORE, _LINES_AFTER = 4, 7
_LEADING, _LINE = 15, 5


def draw_outline(report: Report) -> bytes:
    """Return the outline as a PDF, which does not depend on any answer."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), invariant=True, pageCompression=0)
    draw_cover(canvas, report, names=False)
    for section in report.sections:
        _outline_section(canvas, report, section)
    canvas.save()
    return buffer.getvalue()


def _outline_section(canvas: Canvas, report: Report, section: Section) -> None:
    draw_heading(canvas, report, section)
    top = _draw_lines(canvas, _LINES_BEFORE, HEIGHT - 128)
    top = _draw_exhibit(canvas, section.exhibit, report.accent, top - 26)
    _draw_lines(canvas, _LINES_AFTER, top - 26)
    draw_footer(canvas, report, section.page)


def _draw_lines(canvas: Canvas, count: int, top: float) -> float:
    """Draw gray lines in place of text; return the y of the next line."""
    canvas.setFillColor("#c4c4c4")
    for line in range(count):
        canvas.rect(MARGIN, top - line * _LEADING, INNER, _LINE, stroke=0, fill=1)
    return top - count * _LEADING


def _draw_exhibit(canvas: Canvas, exhibit: Exhibit, accent: str, top: float) -> float:
    """Draw an empty table, or axes without bars or curve; return the y of the lower edge."""
    from reportlab.graphics import renderPDF

    if isinstance(exhibit, Bars | Curve):
        places = exhibit.sites if isinstance(exhibit, Bars) else exhibit.years
        drawing, _ = axes([""] * len(places))
        renderPDF.draw(drawing, canvas, MARGIN, top - CHART_HEIGHT)
        return top - CHART_HEIGHT
    columns = 3 if isinstance(exhibit, Register) else 1 + len(exhibit.years)
    rows = len(exhibit.rows if isinstance(exhibit, Register) else exhibit.sites)
    return draw_table(canvas, [[""] * columns] * (1 + rows), accent, top)
