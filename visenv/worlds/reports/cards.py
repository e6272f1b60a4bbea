"""Generates documents for a model of a million parameters, with pages for views of 96 px.

A page is a square with its number at the top and a panel of stripes in one color. In the panel, 1
px of 3 belongs to a stripe. The color between the stripes is chosen so that the mean of 3 px does
not depend on the color of the stripe: in a thumbnail of a third of the size, as in an overview with
three pages in a row, every panel is the same gray. Only the page itself shows the answer.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled
from visenv.worlds.reports.questions import ReportQuestion, others

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas

PAGES = (5, 9)
"""Fewest and most pages: an overview has three pages in a row, also if it is as square as
possible."""

SIDE = 96
"""Side of a page in points; in a view of 96 px, a point is a pixel."""

PANEL = (12, 24, 84, 84)
"""``[left, top, right, bottom]`` of the stripes in points; multiples of the period, 3."""

GRAY = 110
"""Mean level of every panel."""

_DARK, _LIGHT, _PERIOD = 26, 246, 3
COLORS = {
    "red": (_LIGHT, _DARK, _DARK),
    "green": (_DARK, _LIGHT, _DARK),
    "blue": (_DARK, _DARK, _LIGHT),
    "yellow": (_LIGHT, _LIGHT, _DARK),
    "cyan": (_DARK, _LIGHT, _LIGHT),
    "magenta": (_LIGHT, _DARK, _LIGHT),
}
KINDS = ("colour",)
_STREAM = 0xCA4D


class StripedPage(NamedTuple):
    """Describes a page: the color of its stripes, and whether they are vertical."""

    color: str
    upright: bool


Cards = tuple[StripedPage, ...]


def write_cards(seed: int) -> Cards:
    """Return the pages of the document of that seed; at least two colors occur."""
    rng = np.random.default_rng([_STREAM, seed])
    colors = shuffled(rng, tuple(COLORS))[:2]
    count = int(rng.integers(PAGES[0], PAGES[1] + 1))
    colors += [pick(rng, tuple(COLORS)) for _ in range(count - 2)]
    return tuple(StripedPage(color, bool(rng.random() < 0.5)) for color in shuffled(rng, colors))


def colors_of(cards: Cards) -> tuple[str, ...]:
    """Return the color of each page."""
    return tuple(card.color for card in cards)


def draw_cards(cards: Cards) -> bytes:
    """Return the document as a PDF; the bytes are deterministic."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(SIDE, SIDE), bottomup=0, invariant=True, pageCompression=0)
    for page, card in enumerate(cards, start=1):
        canvas.setFont("Helvetica-Bold", 20)
        canvas.drawCentredString(SIDE / 2, 18, f"page {page}")
        _draw_stripes(canvas, card)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _draw_stripes(canvas: Canvas, card: StripedPage) -> None:
    """Draw the stripes as one path, because PDFium widens a single rectangle to whole pixels."""
    left, top, right, bottom = PANEL
    stripe = COLORS[card.color]
    canvas.setFillColorRGB(*((3 * GRAY - level) / 2 / 255 for level in stripe))
    canvas.rect(left, top, right - left, bottom - top, stroke=0, fill=1)
    canvas.setFillColorRGB(*(level / 255 for level in stripe))
    path = canvas.beginPath()
    if card.upright:
        for x in range(left + 1, right, _PERIOD):
            path.rect(x, top, 1, bottom - top)
    else:
        for y in range(top + 1, bottom, _PERIOD):
            path.rect(left, y, right - left, 1)
    canvas.drawPath(path, stroke=0, fill=1)


def ask_card(rng: np.random.Generator, cards: Cards, kind: str) -> ReportQuestion:
    """Return a question about one page; the wrong colors start with those of other pages."""
    page = int(rng.integers(len(cards)))
    right = cards[page].color
    elsewhere = others(rng, right, (card.color for card in cards))
    anywhere = others(rng, right, COLORS)
    return ReportQuestion(
        kind=kind,
        text=f"What colour are the stripes on page {page + 1}?",
        pages=(page + 1,),
        gold_query=f"page {page + 1}",
        answer=right,
        wrong=tuple(dict.fromkeys([*elsewhere, *anywhere])),
        respond=_say,
    )


def _say(_: np.random.Generator, value: str) -> str:
    return value
