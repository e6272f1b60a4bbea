"""Draws the figures of coats of arms and emblems, and busts with headgear."""

from __future__ import annotations

import math
from collections.abc import Callable

import PIL.ImageDraw

Color = tuple[int, int, int]
Point = tuple[float, float]
Draw = PIL.ImageDraw.ImageDraw

_SKIN = (226, 186, 158)

# Corners in a square from -1 to 1; x points right, y points down.
_OUTLINES: dict[str, tuple[Point, ...]] = {
    "star": tuple(
        (math.sin(k * math.pi / 5) * r, -math.cos(k * math.pi / 5) * r)
        for k, r in enumerate((1.05, 0.42) * 5)
    ),
    "cross": (
        (-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1),
        (-0.3, 0.3), (-1, 0.3), (-1, -0.3), (-0.3, -0.3),
    ),
    "tower": (
        (-0.7, 1), (-0.55, -0.4), (-0.75, -0.4), (-0.75, -1), (-0.45, -1), (-0.45, -0.75),
        (-0.15, -0.75), (-0.15, -1), (0.15, -1), (0.15, -0.75), (0.45, -0.75), (0.45, -1),
        (0.75, -1), (0.75, -0.4), (0.55, -0.4), (0.7, 1), (0.22, 1), (0.22, 0.45), (-0.22, 0.45),
        (-0.22, 1),
    ),
    "diamond": ((0, -1.05), (0.72, 0), (0, 1.05), (-0.72, 0)),
    "tree": (
        (0, -1.05), (0.5, -0.4), (0.28, -0.4), (0.75, 0.25), (0.17, 0.25), (0.17, 1), (-0.17, 1),
        (-0.17, 0.25), (-0.75, 0.25), (-0.28, -0.4), (-0.5, -0.4),
    ),
    "arrow": (
        (0, -1.05), (0.7, -0.25), (0.24, -0.25), (0.24, 1), (-0.24, 1), (-0.24, -0.25),
        (-0.7, -0.25),
    ),
}  # fmt: skip

# For round figures: the radius of the hole and its distance from the center of the disc, relative
# to the disc's radius.
_HOLES = {"ring": (0.58, 0.0), "crescent": (0.82, 0.42)}


def draw_charge(
    draw: Draw, middle: tuple[int, int], radius: int, charge: str, ink: Color, ground: Color
) -> None:
    """Draw one of `visenv.envs.arft.search.world.names.CHARGES`.

    Args:
        draw: The canvas.
        middle: The center of the figure, pixels.
        radius: Half the height of the figure, pixels.
        charge: The name of the figure.
        ink: The color of the figure.
        ground: The color around it.
    """
    x, y = middle
    if charge in _OUTLINES:
        draw.polygon([(x + radius * a, y + radius * b) for a, b in _OUTLINES[charge]], ink)
        return
    hole, away = _HOLES[charge]
    for side, across, color in ((1.0, away / 2, ink), (hole, 1.5 * away, ground)):
        center, reach = x + across * radius, side * radius
        draw.ellipse((center - reach, y - reach, center + reach, y + reach), color)


def draw_bust(
    draw: Draw, middle: tuple[int, int], headgear: str, color: Color, coat: Color
) -> None:
    """Draw head and shoulders, 200 px wide and 250 high.

    Args:
        draw: The canvas.
        middle: The center of the figure, pixels.
        headgear: One of `visenv.envs.arft.search.world.names.HEADGEAR`.
        color: The color of the headgear.
        coat: The color of the coat.
    """
    x, y = middle
    if headgear == "hood":
        draw.ellipse((x - 62, y - 100, x + 62, y + 52), color)
    draw.chord((x - 98, y + 22, x + 98, y + 236), 180, 360, coat)
    draw.rectangle((x - 15, y + 14, x + 15, y + 40), _SKIN)
    draw.ellipse((x - 42, y - 70, x + 42, y + 30), _SKIN)
    for eye in (-16, 16):
        draw.ellipse((x + eye - 4, y - 26, x + eye + 4, y - 18), (40, 34, 30))
    draw.arc((x - 16, y - 14, x + 16, y + 12), 30, 150, (150, 70, 66), 3)
    _HEADGEAR[headgear](draw, x, y, color)


def _hat(draw: Draw, x: int, y: int, color: Color) -> None:
    draw.ellipse((x - 84, y - 66, x + 84, y - 38), color)
    draw.rounded_rectangle((x - 42, y - 118, x + 42, y - 48), 12, color)


def _beret(draw: Draw, x: int, y: int, color: Color) -> None:
    draw.ellipse((x - 64, y - 100, x + 52, y - 40), color)
    draw.rectangle((x - 8, y - 110, x - 2, y - 96), color)


def _crown(draw: Draw, x: int, y: int, color: Color) -> None:
    points = [(-46, -46), (-54, -112), (-24, -80), (0, -118), (24, -80), (54, -112), (46, -46)]
    draw.polygon([(x + across, y + down) for across, down in points], color)


def _hood(draw: Draw, x: int, y: int, color: Color) -> None:
    draw.arc((x - 54, y - 88, x + 54, y + 44), 165, 375, color, 16)


_HEADGEAR: dict[str, Callable[[Draw, int, int, Color], None]] = {
    "hat": _hat,
    "beret": _beret,
    "crown": _crown,
    "hood": _hood,
}
