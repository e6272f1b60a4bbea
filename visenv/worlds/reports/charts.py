"""Draws the charts of a report with reportlab; their values occur in no text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visenv.worlds.reports.report import STEP, Bars, Curve

if TYPE_CHECKING:
    from reportlab.graphics.shapes import Drawing, Path

WIDTH, HEIGHT = 483, 260
"""Size in points, with axes and labels."""

_LEFT, _BOTTOM, _TOP_LEVEL = 34, 24, 13 * STEP
_SMALL: dict[str, Any] = {"fontName": "Helvetica", "fontSize": 9}


def bar_chart(bars: Bars, accent: str) -> Drawing:
    """Draw one bar for each site; its top is on a grid line."""
    from reportlab.graphics.shapes import Rect
    from reportlab.lib.colors import HexColor

    drawing, middles = axes(bars.sites)
    width = 0.5 * (middles[1] - middles[0])
    color = HexColor(accent)
    for middle, value in zip(middles, bars.values, strict=True):
        bar = Rect(middle - width / 2, _BOTTOM, width, _height(value) - _BOTTOM)
        bar.fillColor, bar.strokeColor = color, None
        drawing.add(bar)
    return drawing


def curve_chart(curve: Curve, accent: str) -> Drawing:
    """Draw one dot for each year, on a grid line, joined by a line."""
    from reportlab.graphics.shapes import Circle, PolyLine
    from reportlab.lib.colors import HexColor

    drawing, middles = axes([str(year) for year in curve.years])
    points = list(zip(middles, map(_height, curve.values), strict=True))
    color = HexColor(accent)
    drawing.add(PolyLine(points, strokeColor=color, strokeWidth=2))
    for x, y in points:
        drawing.add(Circle(x, y, 4, fillColor=color, strokeColor=None))
    return drawing


def axes(labels: Sequence[str]) -> tuple[Drawing, list[float]]:
    """Draw a chart with a grid line every `STEP`; return the center x of each label's column."""
    from reportlab.graphics.shapes import Drawing, String

    drawing = Drawing(WIDTH, HEIGHT)
    labeled = range(0, _TOP_LEVEL + 1, 2 * STEP)
    drawing.add(_grid(range(STEP, _TOP_LEVEL + 1, 2 * STEP), "#d9d9d9"))
    drawing.add(_grid(labeled, "#9a9a9a"))
    for level in labeled:
        drawing.add(String(_LEFT - 5, _height(level) - 3, str(level), textAnchor="end", **_SMALL))
    column = (WIDTH - _LEFT) / len(labels)
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
        path.lineTo(WIDTH, _height(level))
    return path


def _height(level: int) -> float:
    return _BOTTOM + (HEIGHT - _BOTTOM - 8) * level / _TOP_LEVEL
