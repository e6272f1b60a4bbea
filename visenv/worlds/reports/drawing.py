"""Draws a report, or its outline, as a PDF by reportlab.

A report has a text layer, in which the values of its charts do not occur. Its outline has every
page with its title and layout, but without its content: an overview of a report shows lines of
equal length in place of text, and empty tables and charts. Its pixels therefore do not reveal, at
any size, the answer to a question.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visenv.worlds.reports.report import (
    STEP,
    Bars,
    Curve,
    Exhibit,
    Register,
    Report,
    Section,
    Table,
)

if TYPE_CHECKING:
    from reportlab.graphics.shapes import Drawing, Path
    from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = 595.0, 842.0  # A4, points
MARGIN = 56.0
INNER = WIDTH - 2 * MARGIN
_TEXT, _LEADING = 10.5, 15.0
_LINE, _LINES_BEFORE, _LINES_AFTER = 5, 4, 7  # of the outline

CHART_WIDTH, CHART_HEIGHT = 483, 260
"""Size of a chart in points, with axes and labels."""

_LEFT, _BOTTOM, _TOP_LEVEL = 34, 24, 13 * STEP
_SMALL: dict[str, Any] = {"fontName": "Helvetica", "fontSize": 9}


def draw_report(report: Report) -> bytes:
    """Return the report as a PDF; the bytes are deterministic."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), invariant=True, pageCompression=0)
    canvas.setTitle(f"{report.company} {report.year}")
    _draw_cover(canvas, report)
    for section in report.sections:
        _draw_section(canvas, report, section)
    canvas.save()
    return buffer.getvalue()


def _draw_cover(canvas: Canvas, report: Report, names: bool = True) -> None:
    """Draw the cover; without `names`, omit the board and the date."""
    canvas.setFillColor(report.accent)
    canvas.rect(0, HEIGHT - 250, WIDTH, 250, stroke=0, fill=1)
    canvas.setFillColor("#ffffff")
    canvas.setFont("Helvetica-Bold", 30)
    canvas.drawString(MARGIN, HEIGHT - 130, report.company)
    canvas.setFont("Helvetica", 20)
    canvas.drawString(MARGIN, HEIGHT - 165, f"Report for the year {report.year}")
    canvas.setFont("Helvetica", 11)
    if names:
        canvas.drawString(MARGIN, HEIGHT - 215, f"Board: {', '.join(report.board)}")
        canvas.drawString(MARGIN, HEIGHT - 231, f"Approved on {report.approved}")
    canvas.setFillColor("#222222")
    canvas.setFont("Helvetica-Bold", 14)
    top = HEIGHT - 300
    canvas.drawString(MARGIN, top, "Contents")
    canvas.setFont("Helvetica", 11)
    for line, section in enumerate(report.sections, start=1):
        y = top - 10 - 18 * line
        canvas.drawString(MARGIN, y, section.topic.title)
        canvas.drawRightString(WIDTH - MARGIN, y, str(section.page))
    _draw_footer(canvas, report, 1)


def _draw_heading(canvas: Canvas, report: Report, section: Section) -> None:
    """Draw a rule, and the title of a section below it."""
    canvas.setFillColor(report.accent)
    canvas.rect(MARGIN, HEIGHT - 70, INNER, 3, stroke=0, fill=1)
    canvas.setFont("Helvetica-Bold", 19)
    canvas.drawString(MARGIN, HEIGHT - 100, section.topic.title)


def _draw_section(canvas: Canvas, report: Report, section: Section) -> None:
    _draw_heading(canvas, report, section)
    canvas.setFillColor("#222222")
    top = _draw_text(canvas, section.opening, HEIGHT - 128)
    canvas.setFont("Helvetica-Bold", 11)
    canvas.drawString(MARGIN, top - 14, caption(report, section))
    top = _draw_exhibit(canvas, section, report.accent, top - 26)
    top = _draw_text(canvas, section.closing, top - 26)
    _draw_text(canvas, _facts(section), top - 8)
    _draw_footer(canvas, report, section.page)


def caption(report: Report, section: Section) -> str:
    """Return the caption above the exhibit."""
    topic, exhibit = section.topic, section.exhibit
    if isinstance(exhibit, Register):
        return f"{topic.title}: register of works"
    if isinstance(exhibit, Bars):
        return f"{topic.title} by site in {report.year} ({topic.unit})"
    return f"{topic.title} by {'site and ' * isinstance(exhibit, Table)}year ({topic.unit})"


def _facts(section: Section) -> str:
    topic = section.topic.phrase
    return (
        f"Responsible for {topic} is {section.lead}. The last review of {topic} took place on "
        f"{section.reviewed}. The budget for {topic} amounts to {section.budget} thousand crowns."
    )


def _draw_exhibit(canvas: Canvas, section: Section, accent: str, top: float) -> float:
    """Draw the exhibit below `top`; return the y of its lower edge."""
    from reportlab.graphics import renderPDF

    exhibit = section.exhibit
    if isinstance(exhibit, Table):
        head = ["Site", *map(str, exhibit.years)]
        rows = zip(exhibit.sites, exhibit.values, strict=True)
        return _draw_table(
            canvas, [head, *([site, *map(str, row)] for site, row in rows)], accent, top
        )
    if isinstance(exhibit, Register):
        return _draw_table(canvas, [["Work", "Site", "Status"], *exhibit.rows], accent, top)
    chart = (
        _bar_chart(exhibit, accent) if isinstance(exhibit, Bars) else _curve_chart(exhibit, accent)
    )
    renderPDF.draw(chart, canvas, MARGIN, top - CHART_HEIGHT)
    return top - CHART_HEIGHT


def _draw_table(canvas: Canvas, rows: list[Sequence[str]], accent: str, top: float) -> float:
    """Draw a table below `top`, with its first row as header; return the y of its lower edge."""
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Table as DrawnTable

    table = DrawnTable(rows, colWidths=INNER / len(rows[0]), rowHeights=19)
    table.setStyle(
        [
            ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 10),
            ("FONT", (0, 1), (-1, -1), "Helvetica", 10),
            ("TEXTCOLOR", (0, 0), (-1, 0), HexColor("#ffffff")),
            ("BACKGROUND", (0, 0), (-1, 0), HexColor(accent)),
            ("LINEBELOW", (0, 1), (-1, -1), 0.5, HexColor("#9a9a9a")),
        ]
    )
    _, height = table.wrapOn(canvas, INNER, HEIGHT)
    table.drawOn(canvas, MARGIN, top - height)
    return float(top - height)


def _draw_text(canvas: Canvas, text: str, top: float) -> float:
    """Draw a paragraph with its first baseline at `top`; return the baseline of the next one."""
    from reportlab.lib.utils import simpleSplit

    lines = simpleSplit(text, "Helvetica", _TEXT, INNER)
    block = canvas.beginText(MARGIN, top)
    block.setFont("Helvetica", _TEXT, _LEADING)
    block.textLines(lines)
    canvas.drawText(block)
    return float(top - _LEADING * len(lines))


def _draw_footer(canvas: Canvas, report: Report, page: int) -> None:
    """Draw the footer, and end the page."""
    canvas.setFont("Helvetica", 8.5)
    canvas.setFillColor("#666666")
    canvas.drawString(MARGIN, 34, f"{report.company} · {report.year}")
    canvas.drawRightString(WIDTH - MARGIN, 34, f"Page {page}")
    canvas.showPage()


def draw_outline(report: Report) -> bytes:
    """Return the outline as a PDF, which does not depend on any answer."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), invariant=True, pageCompression=0)
    _draw_cover(canvas, report, names=False)
    for section in report.sections:
        _outline_section(canvas, report, section)
    canvas.save()
    return buffer.getvalue()


def _outline_section(canvas: Canvas, report: Report, section: Section) -> None:
    _draw_heading(canvas, report, section)
    top = _draw_lines(canvas, _LINES_BEFORE, HEIGHT - 128)
    top = _outline_exhibit(canvas, section.exhibit, report.accent, top - 26)
    _draw_lines(canvas, _LINES_AFTER, top - 26)
    _draw_footer(canvas, report, section.page)


def _draw_lines(canvas: Canvas, count: int, top: float) -> float:
    """Draw gray lines in place of text; return the y of the next line."""
    canvas.setFillColor("#c4c4c4")
    for line in range(count):
        canvas.rect(MARGIN, top - line * _LEADING, INNER, _LINE, stroke=0, fill=1)
    return top - count * _LEADING


def _outline_exhibit(canvas: Canvas, exhibit: Exhibit, accent: str, top: float) -> float:
    """Draw an empty table, or axes without bars or curve; return the y of the lower edge."""
    from reportlab.graphics import renderPDF

    if isinstance(exhibit, Bars | Curve):
        places = exhibit.sites if isinstance(exhibit, Bars) else exhibit.years
        drawing, _ = _axes([""] * len(places))
        renderPDF.draw(drawing, canvas, MARGIN, top - CHART_HEIGHT)
        return top - CHART_HEIGHT
    columns = 3 if isinstance(exhibit, Register) else 1 + len(exhibit.years)
    rows = len(exhibit.rows if isinstance(exhibit, Register) else exhibit.sites)
    return _draw_table(canvas, [[""] * columns] * (1 + rows), accent, top)


def _bar_chart(bars: Bars, accent: str) -> Drawing:
    """Draw one bar for each site; its top is on a grid line."""
    from reportlab.graphics.shapes import Rect
    from reportlab.lib.colors import HexColor

    drawing, middles = _axes(bars.sites)
    width = 0.5 * (middles[1] - middles[0])
    color = HexColor(accent)
    for middle, value in zip(middles, bars.values, strict=True):
        bar = Rect(middle - width / 2, _BOTTOM, width, _height(value) - _BOTTOM)
        bar.fillColor, bar.strokeColor = color, None
        drawing.add(bar)
    return drawing


def _curve_chart(curve: Curve, accent: str) -> Drawing:
    """Draw one dot for each year, on a grid line, joined by a line."""
    from reportlab.graphics.shapes import Circle, PolyLine
    from reportlab.lib.colors import HexColor

    drawing, middles = _axes([str(year) for year in curve.years])
    points = list(zip(middles, map(_height, curve.values), strict=True))
    color = HexColor(accent)
    drawing.add(PolyLine(points, strokeColor=color, strokeWidth=2))
    for x, y in points:
        drawing.add(Circle(x, y, 4, fillColor=color, strokeColor=None))
    return drawing


def _axes(labels: Sequence[str]) -> tuple[Drawing, list[float]]:
    """Draw a chart with a grid line every `STEP`; return the center x of each label's column."""
    from reportlab.graphics.shapes import Drawing, String

    drawing = Drawing(CHART_WIDTH, CHART_HEIGHT)
    labeled = range(0, _TOP_LEVEL + 1, 2 * STEP)
    drawing.add(_grid(range(STEP, _TOP_LEVEL + 1, 2 * STEP), "#d9d9d9"))
    drawing.add(_grid(labeled, "#9a9a9a"))
    for level in labeled:
        drawing.add(String(_LEFT - 5, _height(level) - 3, str(level), textAnchor="end", **_SMALL))
    column = (CHART_WIDTH - _LEFT) / len(labels)
    middles = [_LEFT + column * (place + 0.5) for place in range(len(labels))]
    for middle, label in zip(middles, labels, strict=True):
        drawing.add(String(middle, _BOTTOM - 14, label, textAnchor="middle", **_SMALL))
    return drawing, middles


def _grid(levels: range, color: str) -> Path:
    """Draw lines at these levels as one path, which is several times faster than separate lines."""
    from reportlab.graphics.shapes import Path
    from reportlab.lib.colors import HexColor

    path = Path(strokeColor=HexColor(color), strokeWidth=0.7, fillColor=None)
    for level in levels:
        path.moveTo(_LEFT, _height(level))
        path.lineTo(CHART_WIDTH, _height(level))
    return path


def _height(level: int) -> float:
    return _BOTTOM + (CHART_HEIGHT - _BOTTOM - 8) * level / _TOP_LEVEL
