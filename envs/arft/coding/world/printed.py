"""Draws what is printed on paper: pages, tables, receipts and labels."""

from __future__ import annotations

import numpy as np

from visenv.worlds.draws import pick

from .canvas import EDGE, SHEET, SIDE, PictureCanvas, random_corner, random_edge, width
from .entries import COUNT

_SHOPS = ("CORNER SHOP", "CITY MARKET", "GREEN GROCER", "VILLAGE STORE")
_TITLES = ("STOCK LIST", "SPARE PARTS", "WORKSHOP", "INVENTORY")


def draw_page(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a page with a heading, a list of the entries, and lines of other text around it."""
    canvas.lay(rng, SHEET)
    capital = canvas.style.capital
    canvas.write((EDGE, 90), f"NOTICE {int(rng.integers(10, 100))}", 52)
    line, column = round(2.2 * capital), round(9.5 * capital)
    across = column + canvas.widest(0)
    left = random_edge(rng, across)
    top = int(rng.integers(240, SIDE - EDGE - COUNT * line - 100))
    for row in range(COUNT):
        y = top + row * line
        canvas.entry(row, None, (left, y))
        canvas.entry(row, 0, (left + column, y))
        rule = y + round(1.55 * capital)
        canvas.rule(left, rule, left + across, rule)
    gaps = (200, top - capital), (top + COUNT * line + capital, SIDE - EDGE)
    canvas.fill(rng, EDGE, SIDE - EDGE, *gaps)


def draw_table(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a ruled table with a heading above each column, and lines of other text around it."""
    canvas.lay(rng, SHEET)
    capital = canvas.style.capital
    heading, pad = max(3, round(0.6 * capital)), round(0.8 * capital)
    canvas.write((EDGE, 90), pick(rng, _TITLES), 44)
    columns: list[int | None] = [None, *range(len(canvas.entries.columns))]
    widths = [canvas.widest(column) + 2 * pad for column in columns]
    for place, name in enumerate(canvas.entries.columns, 1):
        widths[place] = max(widths[place], width(name, heading) + 2 * pad)
    line = round(2.3 * capital)
    left = int(rng.integers(EDGE - pad, max(EDGE - pad, SIDE - EDGE - sum(widths)) + 1))
    top = int(rng.integers(200, SIDE - EDGE - (COUNT + 1) * line - 60))
    bottom, right = top + (COUNT + 1) * line, left + sum(widths)
    for row in range(COUNT + 2):
        canvas.rule(left, top + row * line, right, top + row * line)
    x = left
    for column, across in zip(columns, widths, strict=True):
        canvas.rule(x, top, x, bottom)
        if column is not None:
            corner = x + pad, top + (line - heading) // 2
            canvas.write(corner, canvas.entries.columns[column], heading)
        for row in range(COUNT):
            y = top + (row + 1) * line + (line - capital) // 2
            canvas.entry(row, column, (x + pad, y))
        x += across
    canvas.rule(right, top, right, bottom)
    gaps = (160, top - capital), (bottom + capital, SIDE - EDGE)
    canvas.fill(rng, EDGE, SIDE - EDGE, *gaps)


def draw_receipt(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a receipt: a narrow slip with prices at its right edge, and their total below a line."""
    capital = canvas.style.capital
    small, pad, line = max(3, round(0.55 * capital)), round(1.1 * capital), round(2.0 * capital)
    shop, number = pick(rng, _SHOPS), f"NO {int(rng.integers(1000, 10000))}"
    gap = round(capital * rng.uniform(1.5, 3.5))
    inner = max(canvas.widest(None) + gap + canvas.widest(0), width(shop, small))
    across, down = inner + 2 * pad, round(3 * line + COUNT * line + 2.5 * capital)
    left, top = random_corner(rng, across, down, EDGE - pad)
    canvas.lay(rng, (left, top, left + across, top + down))
    canvas.write((left + (across - width(shop, small)) // 2, top + pad), shop, small)
    canvas.write((left + pad, top + pad + round(1.6 * small) + small), number, small)
    y = top + round(2.6 * line)
    for row in range(COUNT):
        if row == COUNT - 1:
            canvas.rule(left + pad, y, left + pad + inner, y)
            y += round(0.9 * capital)
        canvas.entry(row, None, (left + pad, y))
        price = canvas.text(row, 0)
        canvas.entry(row, 0, (left + pad + inner - width(price, capital), y))
        y += line
    _draw_bars(rng, canvas, (left + pad, y, left + pad + inner, y + round(1.5 * capital)))


def draw_label(rng: np.random.Generator, canvas: PictureCanvas) -> None:
    """Draw a label with four framed fields, a small name above each value, and a bar code."""
    capital = canvas.style.capital
    small, pad = max(3, round(0.5 * capital)), round(0.7 * capital)
    texts = [canvas.text(row, 0) for row in range(COUNT)]

    def halves_at(capital: int) -> list[int]:
        return [max(width(text, capital) for text in texts[side::2]) + 2 * pad for side in (0, 1)]

    while sum(halves_at(capital)) > SIDE - 2 * (EDGE - pad):
        capital -= 1
    halves = halves_at(capital)
    field, code = round(3.6 * capital), round(3 * capital)
    across, down = sum(halves), 2 * field + code
    left, top = random_corner(rng, across, down, EDGE - pad)
    canvas.lay(rng, (left, top, left + across, top + down))
    for row in range(COUNT):
        x, y = left + (row % 2) * halves[0], top + (row // 2) * field
        canvas.entry(row, None, (x + pad, y + pad), small)
        canvas.entry(row, 0, (x + pad, y + round(2.0 * capital)), capital)
    for step in range(3):
        canvas.rule(left, top + step * field, left + across, top + step * field)
    canvas.rule(left + halves[0], top, left + halves[0], top + 2 * field)
    bars = (left + pad, top + 2 * field + pad, left + across - pad, top + down - pad)
    _draw_bars(rng, canvas, bars)


def _draw_bars(
    rng: np.random.Generator, canvas: PictureCanvas, box: tuple[int, int, int, int]
) -> None:
    """Draw a bar code."""
    left, top, right, bottom = box
    unit = max(1, canvas.style.capital // 12)
    x = left
    while x + 4 * unit < right:
        bar = unit * int(rng.integers(1, 4))
        canvas.draw.rectangle((x, top, x + bar - 1, bottom), canvas.style.ink)
        x += bar + unit * int(rng.integers(1, 4))
