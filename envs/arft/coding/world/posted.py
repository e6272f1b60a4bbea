"""Draws what hangs or is shown outdoors or on a wall: signs, boards, charts and maps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import PIL.Image

from visenv.types import Pixels
from visenv.worlds.draws import pick
from visenv.worlds.scenes.background import add_grain

from .canvas import EDGE, SHEET, SIDE, Color, PictureCanvas, random_corner, random_edge, width
from .entries import COUNT

_CELL = SIDE // 2
_TITLES = ("HARVEST", "OUTPUT", "SALES", "EXPORT")
_BARS: tuple[Color, ...] = (
    (176, 92, 84), (96, 130, 176), (110, 160, 104), (196, 160, 84), (140, 112, 168),
)  # fmt: skip
_LAMPS = (226, 196, 96)
_BANDS: tuple[Color, ...] = (
    (142, 182, 208), (176, 204, 160), (200, 216, 168), (218, 208, 160), (206, 182, 138),
)  # fmt: skip
"""Colors of a map from water to mountains."""
_CONTOUR = 0.82
_ROAD, _ROAD_EDGE = (246, 240, 214), (128, 112, 100)
_DOT = (170, 60, 52)


def draw_signs(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw four plates on posts, one in each quarter."""
    for row, (capital, across, down, left, top) in enumerate(_plates(rng, canvas)):
        post, middle = max(2, capital // 4), left + across // 2
        floor = (row // 2 + 1) * _CELL
        canvas.draw.rectangle((middle - post, top + down, middle + post, floor), (96, 92, 88))
        box = (left, top, left + across, top + down)
        frame = max(1, capital // 8)
        style = canvas.style
        canvas.draw.rounded_rectangle(box, capital // 2, style.ground, style.ink, frame)
        _write_pair(canvas, row, left, top, across, capital)


def draw_map(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a map: four places at a road, each with a small plate that has its name and height."""
    style = canvas.style
    canvas.image.paste(PIL.Image.fromarray(_land(rng)))
    plates = _plates(rng, canvas)
    wide = max(3, style.capital // 3)
    points = [
        (left + across // 2, top + down + round(0.8 * capital))
        for capital, across, down, left, top in plates
    ]
    for color, broad in ((_ROAD_EDGE, wide + 4), (_ROAD, wide)):
        canvas.draw.line([points[0], points[1], points[3], points[2]], color, broad, "curve")
    for row, (capital, across, down, left, top) in enumerate(plates):
        x, y = points[row]
        radius = max(2, capital // 3)
        canvas.draw.ellipse((x - radius, y - radius, x + radius, y + radius), _DOT, style.ink)
        canvas.lay(rng, (left, top, left + across, top + down))
        _write_pair(canvas, row, left, top, across, capital)


def _land(rng: np.random.Generator) -> Pixels:
    """Return water and land in bands of height with a contour line between two bands."""
    from visenv.opencv import cv2

    heights = np.zeros((SIDE, SIDE), np.float32)
    for cells, weight in ((5, 1.0), (11, 0.45), (40, 0.05)):
        field = rng.uniform(-weight, weight, (cells, cells)).astype(np.float32)
        heights += cv2.resize(field, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    limits = np.quantile(heights[::16, ::16], (0.2, 0.45, 0.7, 0.9))
    bands = np.searchsorted(limits, heights).astype(np.uint8)
    pixels = np.array(_BANDS, np.uint8)[bands]
    lines = cv2.morphologyEx(bands, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    pixels[lines] = (pixels[lines] * _CONTOUR).astype(np.uint8)
    add_grain(rng, pixels, 5)
    return pixels


def draw_chart(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a bar chart with the name and the value of each bar, lying or upright."""
    canvas.lay(rng, SHEET)
    canvas.write((EDGE, 90), f"{pick(rng, _TITLES)} {int(rng.integers(1990, 2030))}", 44)
    draw = _draw_upright if rng.random() < 0.5 else _draw_lying
    color = pick(rng, _BARS)
    values = [int(value) for value in canvas.entries.values[0]]
    top, bottom = draw(rng, canvas, [value / max(values) for value in values], color)
    capital = canvas.style.capital
    canvas.fill(rng, EDGE, SIDE - EDGE, (140, top - capital), (bottom + capital, SIDE - EDGE))


def _draw_lying(
    rng: np.random.Generator, canvas: PictureCanvas, shares: list[float], color: Color
) -> tuple[int, int]:
    """Draw bars to the right of their names; return the upper and lower edge of the chart."""
    capital = canvas.style.capital
    gap, line = round(0.7 * capital), round(3.2 * capital)
    names, longest = canvas.widest(None), round(9 * capital)
    across = names + longest + 2 * gap + canvas.widest(0)
    left, top = _below_title(rng, across, COUNT * line)
    axis = left + names + gap
    for row, share in enumerate(shares):
        y = top + row * line + capital
        canvas.entry(row, None, (left, y))
        end = axis + round(share * longest)
        bar = (axis, y - round(0.5 * capital), end, y + round(1.5 * capital))
        canvas.draw.rectangle(bar, color, canvas.style.ink)
        canvas.entry(row, 0, (end + gap, y))
    canvas.rule(axis, top, axis, top + COUNT * line)
    return top, top + COUNT * line


def _draw_upright(
    rng: np.random.Generator, canvas: PictureCanvas, shares: list[float], color: Color
) -> tuple[int, int]:
    """Draw bars above their names; return the upper and lower edge of the chart."""
    capital = canvas.style.capital
    gap, longest = round(0.7 * capital), round(10 * capital)
    step = max(canvas.widest(None), canvas.widest(0)) + round(0.9 * capital)
    left, top = _below_title(rng, COUNT * step, longest + 4 * capital)
    floor = top + 2 * capital + longest
    for row, share in enumerate(shares):
        middle = left + row * step + step // 2
        roof, half = floor - round(share * longest), round(0.9 * capital)
        canvas.draw.rectangle((middle - half, roof, middle + half, floor), color, canvas.style.ink)
        for column, y in ((None, floor + gap), (0, roof - gap - capital)):
            across = width(canvas.text(row, column), capital)
            canvas.entry(row, column, (middle - across // 2, y))
    canvas.rule(left, floor, left + COUNT * step, floor)
    return top, floor + 2 * capital


def _below_title(rng: np.random.Generator, across: int, down: int) -> tuple[int, int]:
    left = random_edge(rng, across)
    return left, int(rng.integers(170, max(170, SIDE - EDGE - down) + 1))


def draw_board(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a board of departures with a row for each train."""
    capital = canvas.style.capital
    pad, line, small = round(0.9 * capital), round(2.1 * capital), max(3, round(0.55 * capital))
    gap = round(1.3 * capital)
    columns: list[int | None] = [0, None, 1]
    widths = [
        max(canvas.widest(column), width(_heading(canvas, column), small)) + gap
        for column in columns
    ]
    across, down = sum(widths) - gap + 2 * pad, round((COUNT + 1.4) * line)
    left, top = random_corner(rng, across, down, EDGE - pad)
    canvas.lay(rng, (left, top, left + across, top + down))
    frame = max(1, capital // 6)
    canvas.draw.rectangle(
        (left - frame, top - frame, left + across, top + down), None, (40, 42, 46), frame
    )
    x = left + pad
    for column, wide in zip(columns, widths, strict=True):
        canvas.write((x, top + pad // 2 + small // 2), _heading(canvas, column), small, _LAMPS)
        for row in range(COUNT):
            canvas.entry(row, column, (x, top + round((row + 1.3) * line)))
        x += wide
    for row in range(COUNT):
        y = top + round((row + 1) * line)
        canvas.draw.line((left + pad, y, left + across - pad, y), (98, 100, 104), frame // 3 + 1)


def _heading(canvas: PictureCanvas, column: int | None) -> str:
    return "TRAIN TO" if column is None else canvas.entries.columns[column]


class _Plate(NamedTuple):
    """Holds the height of capitals of a plate, its size, and its left and upper edge, pixels."""

    capital: int
    across: int
    down: int
    left: int
    top: int


def _plates(rng: np.random.Generator, canvas: PictureCanvas) -> list[_Plate]:
    """Place a plate for each row in its quarter, with capitals at which both texts fit into it."""
    plates: list[_Plate] = []
    for row in range(COUNT):
        texts, capital = (canvas.text(row, None), canvas.text(row, 0)), canvas.style.capital
        while (wide := max(width(text, capital) for text in texts)) > _CELL - 2 * EDGE:
            capital -= 1
        across, down = wide + 2 * capital, round(5 * capital)
        left = (row % 2) * _CELL + EDGE - capital
        left += int(rng.integers(_CELL - across - 2 * (EDGE - capital) + 1))
        top = (row // 2) * _CELL + EDGE + int(rng.integers(_CELL - down - 2 * EDGE + 1))
        plates.append(_Plate(capital, across, down, left, top))
    return plates


def _write_pair(
    canvas: PictureCanvas, row: int, left: int, top: int, across: int, capital: int
) -> None:
    """Write the name of a row and its value below it, in the middle of a plate."""
    for place, column in enumerate((None, 0)):
        wide = width(canvas.text(row, column), capital)
        at = left + (across - wide) // 2, top + round((0.9 + 2 * place) * capital)
        canvas.entry(row, column, at, capital)
