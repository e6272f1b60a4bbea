"""Draws the layouts: square pictures of one size, with solid ink in large or small letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from visenv.types import Pixels
from visenv.worlds.draws import pick
from visenv.worlds.scenes.background import surface

from .canvas import SIDE, PictureCanvas, TextBox, draw_style
from .entries import PictureEntries
from .posted import draw_board, draw_chart, draw_map, draw_signs
from .printed import draw_label, draw_page, draw_receipt, draw_table

_CLUTTER = 0.6
_PAINTED = ("landscape", "textures")
"""Surfaces that need no photographs."""
_DARK: Mapping[str, float] = {"signs": 0.4, "board": 1.0}
"""Share of pictures with light ink on a dark ground; none of the other layouts."""

_DRAWN: Mapping[str, Callable[[np.random.Generator, PictureCanvas], None]] = {
    "page": draw_page,
    "signs": draw_signs,
    "table": draw_table,
    "chart": draw_chart,
    "receipt": draw_receipt,
    "label": draw_label,
    "board": draw_board,
    "map": draw_map,
}


def draw_picture(
    rng: np.random.Generator, entries: PictureEntries, small: bool, photographs: bool = False
) -> tuple[Pixels, TextBox]:
    """Return a picture, uint8 ``[1280, 1280, 3]``, and the position of the answer.

    Args:
        rng: Draws everything except the text.
        entries: The text.
        small: Whether the letters are too small to be read as the picture is shown.
        photographs: Whether the surfaces are photographs of installed packages.
    """
    style = draw_style(rng, small, rng.random() < _DARK.get(entries.layout, 0.0))
    material = "photographs" if photographs else pick(rng, _PAINTED)
    canvas = PictureCanvas(surface(rng, material, SIDE, _CLUTTER), entries, style)
    _DRAWN[entries.layout](rng, canvas)
    assert canvas.found is not None, "every layout writes all entries"
    return np.asarray(canvas.image), canvas.found
