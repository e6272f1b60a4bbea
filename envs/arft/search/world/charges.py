"""The figures on coats of arms and emblems, and busts with something on the head."""

from __future__ import annotations

import math
from collections.abc import Callable

import PIL.ImageDraw

Colour = tuple[int, int, int]
Point = tuple[float, float]
Draw = PIL.ImageDraw.ImageDraw

_SKIN = (226, 186, 158)

# Corners on a square from -1 to 1, down and to the right.
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

# Of round figures: the radius of the hole, and how far it is from the middle of the disc, as shares
# of the disc's radius.
_HOLES = {"ring": (0.58, 0.0), "crescent": (0.82, 0.42)}


def draw_charge(
    draw: Draw, middle: tuple[int, int], radius: int, charge: str, ink: Colour, ground: Colour
) -> None:
    """Draw one of `visenv.envs.arft.search.world.words.CHARGES`.

    Args:
        draw: What to draw on.
        middle: Of the figure, pixels.
        radius: Half its height, pixels.
        charge: Its name.
        ink: Its colour.
        ground: The colour around it.
    """
    x, y = middle
    if charge in _OUTLINES:
        draw.polygon([(x + radius * a, y + radius * b) for a, b in _OUTLINES[charge]], ink)
        return
    hole, away = _HOLES[charge]
    for side, across, colour in ((1.0, away / 2, ink), (hole, 1.5 * away, ground)):
        centre, reach = x + across * radius, side * radius
        draw.ellipse((centre - reach, y - reach, centre + reach, y + reach), colour)


def draw_bust(
    draw: Draw, middle: tuple[int, int], headgear: str, colour: Colour, coat: Colour
) -> None:
    """Draw head and shoulders, 200 px wide and 250 high.

    Args:
        draw: What to draw on.
        middle: Of the figure, pixels.
        headgear: One of `visenv.envs.arft.search.world.words.HEADGEAR`.
        colour: Of the headgear.
        coat: Its colour.
    """
    x, y = middle
    if headgear == "hood":
        draw.ellipse((x - 62, y - 100, x + 62, y + 52), colour)
    draw.chord((x - 98, y + 22, x + 98, y + 236), 180, 360, coat)
    draw.rectangle((x - 15, y + 14, x + 15, y + 40), _SKIN)
    draw.ellipse((x - 42, y - 70, x + 42, y + 30), _SKIN)
    for eye in (-16, 16):
        draw.ellipse((x + eye - 4, y - 26, x + eye + 4, y - 18), (40, 34, 30))
    draw.arc((x - 16, y - 14, x + 16, y + 12), 30, 150, (150, 70, 66), 3)
    _HEADGEAR[headgear](draw, x, y, colour)


def _hat(draw: Draw, x: int, y: int, colour: Colour) -> None:
    draw.ellipse((x - 84, y - 66, x + 84, y - 38), colour)
    draw.rounded_rectangle((x - 42, y - 118, x + 42, y - 48), 12, colour)


def _beret(draw: Draw, x: int, y: int, colour: Colour) -> None:
    draw.ellipse((x - 64, y - 100, x + 52, y - 40), colour)
    draw.rectangle((x - 8, y - 110, x - 2, y - 96), colour)


def _crown(draw: Draw, x: int, y: int, colour: Colour) -> None:
    points = [(-46, -46), (-54, -112), (-24, -80), (0, -118), (24, -80), (54, -112), (46, -46)]
    draw.polygon([(x + across, y + down) for across, down in points], colour)


def _hood(draw: Draw, x: int, y: int, colour: Colour) -> None:
    draw.arc((x - 54, y - 88, x + 54, y + 44), 165, 375, colour, 16)


_HEADGEAR: dict[str, Callable[[Draw, int, int, Colour], None]] = {
    "hat": _hat,
    "beret": _beret,
    "crown": _crown,
    "hood": _hood,
}
