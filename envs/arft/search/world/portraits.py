"""Draws images of entities: with their name, or with the features that their article describes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from visenv.types import Pixels
from visenv.worlds.draws import pick

from .names import COLORS
from .society import Entity

SMALLEST, LARGEST = 18, 64
"""Smallest and largest size of letters, pixels."""

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

SIZE = (448, 336)
"""Width and height of every image, pixels."""

_GROUNDS = ((198, 205, 210), (214, 205, 188), (188, 203, 190), (206, 196, 208), (222, 220, 214))

_INK, _PAPER = (28, 28, 34), (244, 240, 228)

Box = tuple[int, int, int, int]


def draw_lettering(
    draw: PIL.ImageDraw.ImageDraw,
    box: tuple[int, int, int, int],
    text: str,
    color: tuple[int, int, int],
) -> None:
    """Write `text` in the middle of the box, with the line breaks that allow the largest size.

    Args:
        draw: The canvas.
        box: ``(left, top, right, bottom)``, pixels.
        text: At least one word.
        color: RGB levels.
    """
    left, top, right, bottom = box
    size, written = _largest(draw, text, right - left, bottom - top)
    place = ((left + right) / 2, (top + bottom) / 2)
    draw.multiline_text(
        place, written, color, _font(size), "mm", spacing=_gap(size), align="center"
    )


def _largest(draw: PIL.ImageDraw.ImageDraw, text: str, width: int, height: int) -> tuple[int, str]:
    """Return the largest letter size and the text in lines; ties go to the fewest lines."""
    sizes: dict[str, int] = {}
    for written in _broken(text):
        left, top, right, bottom = draw.multiline_textbbox(
            (0, 0), written, _font(LARGEST), spacing=_gap(LARGEST)
        )
        scale = min(width / (right - left), height / (bottom - top), 1.0)
        sizes[written] = max(SMALLEST, int(LARGEST * scale))
    best = max(sizes, key=sizes.__getitem__)
    return sizes[best], best


def _broken(text: str) -> list[str]:
    """Return the text with all combinations of line breaks at blanks, fewest lines first."""
    words = text.split()
    found = []
    for breaks in range(len(words)):
        for places in combinations(range(1, len(words)), breaks):
            ends = (0, *places, len(words))
            lines = (" ".join(words[start:end]) for start, end in pairwise(ends))
            found.append("\n".join(lines))
    return found


def _gap(size: int) -> int:
    return size // 5


@cache
def _font(size: int) -> PIL.ImageFont.FreeTypeFont | PIL.ImageFont.ImageFont:
    return PIL.ImageFont.load_default(size)


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


def draw_named(rng: np.random.Generator, entity: Entity) -> Pixels:
    """Return an image that contains the entity's name, uint8 ``[336, 448, 3]``."""
    return _drawn(rng, lambda draw, box: _SIGNS[entity.kind](draw, box, entity.name))


def draw_looks(rng: np.random.Generator, entity: Entity) -> Pixels:
    """Return an image of the entity's look, without its name; requires an entity with a look."""
    return _drawn(rng, lambda draw, box: _draw_look(draw, box, entity))


def _drawn(rng: np.random.Generator, draw_in: Callable[[Draw, Box], None]) -> Pixels:
    """Draw in a box at a random position on a plain ground, with a little noise."""
    image = PIL.Image.new("RGB", SIZE, pick(rng, _GROUNDS))
    left, top = int(rng.integers(20, 61)), int(rng.integers(14, 43))
    draw_in(PIL.ImageDraw.Draw(image), (left, top, left + 368, top + 276))
    pixels = np.array(image, np.int16)
    pixels += rng.integers(-4, 5, (SIZE[1], SIZE[0], 1), np.int16)
    return np.clip(pixels, 0, 255).astype(np.uint8)


# ---------------------------------------------------------------------------- images with a name


def _badge(draw: Draw, box: Box, name: str) -> None:
    """Draw a name badge: a lanyard, a head and shoulders in gray, the name below."""
    left, top, right, bottom = box
    middle = (left + right) // 2
    draw.line((middle - 60, 0, middle, top + 16, middle + 60, 0), (60, 90, 150), 9)
    draw.rounded_rectangle((left + 40, top + 10, right - 40, bottom), 18, _PAPER, _INK, 3)
    draw.ellipse((middle - 30, top + 40, middle + 30, top + 106), (150, 150, 156))
    draw.chord((middle - 62, top + 110, middle + 62, top + 250), 180, 360, (150, 150, 156))
    draw_lettering(draw, (left + 52, top + 190, right - 52, bottom - 10), name, _INK)


def _road_sign(draw: Draw, box: Box, name: str) -> None:
    """Draw a plate on two posts."""
    left, top, right, _ = box
    for x in (left + 70, right - 70):
        draw.rectangle((x - 7, top + 60, x + 7, SIZE[1]), (105, 108, 112))
    draw.rounded_rectangle((left, top + 40, right, top + 170), 14, (250, 205, 40), _INK, 5)
    draw_lettering(draw, (left + 16, top + 52, right - 16, top + 158), name, _INK)


def _shop_sign(draw: Draw, box: Box, name: str) -> None:
    """Draw a board over two windows and a door."""
    left, top, right, _ = box
    draw.rectangle((left, top, right, SIZE[1]), (150, 98, 80))
    for x in (left + 24, right - 124):
        draw.rectangle((x, top + 130, x + 100, top + 226), (175, 205, 220), _PAPER, 5)
    draw.rectangle((left + 152, top + 130, right - 152, SIZE[1]), (70, 52, 44))
    draw.rectangle((left + 8, top + 16, right - 8, top + 106), (24, 64, 58), (212, 178, 92), 4)
    draw_lettering(draw, (left + 20, top + 24, right - 20, top + 98), name, _PAPER)


def _cover(draw: Draw, box: Box, name: str) -> None:
    """Draw a book that stands upright."""
    left, top, right, bottom = box
    left, right = left + 76, right - 76
    draw.rectangle((left + 8, top + 8, right + 10, bottom + 8), (120, 116, 108))
    draw.rectangle((left, top, right, bottom), (106, 34, 40), _INK, 2)
    draw.rectangle((left, top, left + 18, bottom), (76, 22, 28))
    draw.rectangle((left + 34, top + 28, right - 16, bottom - 96), None, (226, 196, 120), 3)
    draw_lettering(draw, (left + 42, top + 36, right - 24, bottom - 104), name, (244, 226, 170))


def _poster(draw: Draw, box: Box, name: str) -> None:
    """Draw a stage between two curtains, with the title above it."""
    left, top, right, bottom = box
    left, right = left + 40, right - 40
    draw.rectangle((left, top, right, bottom), _PAPER, _INK, 3)
    stage = top + 140
    draw.rectangle((left + 16, stage, right - 16, bottom - 16), (56, 44, 74))
    for x, outer in ((left + 16, left + 84), (right - 16, right - 84)):
        draw.polygon([(x, stage), (outer, stage), (x, bottom - 16)], (176, 32, 44))
    draw_lettering(draw, (left + 14, top + 12, right - 14, stage - 10), name, (150, 24, 36))


def _plaque(draw: Draw, box: Box, name: str) -> None:
    """Draw a bridge of three arches, and a stone plate with its name below it."""
    left, top, right, bottom = box
    draw.rectangle((left, top + 20, right, top + 120), (128, 122, 114))
    span = (right - left) // 3
    for arch in range(3):
        x = left + arch * span
        draw.pieslice((x + 14, top + 56, x + span - 14, top + 184), 180, 360, (150, 178, 196))
    draw.rectangle((left, top + 120, right, top + 134), (120, 154, 178))
    draw.rounded_rectangle((left + 20, top + 160, right - 20, bottom), 8, (96, 98, 104), _INK, 3)
    draw_lettering(draw, (left + 34, top + 168, right - 34, bottom - 8), name, _PAPER)


_SIGNS: dict[str, Callable[[Draw, Box, str], None]] = {
    "person": _badge,
    "city": _road_sign,
    "company": _shop_sign,
    "novel": _cover,
    "opera": _poster,
    "bridge": _plaque,
}

# ---------------------------------------------------------------------------- images without a name


def _draw_look(draw: Draw, box: Box, entity: Entity) -> None:
    """Draw a portrait in a frame, a shield, or a disc."""
    assert entity.look is not None
    left, top, right, bottom = box
    middle = (left + right) // 2
    ink, ground = COLORS[entity.look.ink], COLORS[entity.look.ground]
    if entity.kind == "person":
        draw.rectangle((middle - 112, top, middle + 112, bottom), (178, 170, 156), (92, 62, 32), 9)
        draw_bust(draw, (middle, top + 138), entity.look.charge, ink, ground)
        return
    if entity.kind == "city":
        shield = [(middle - 110, top), (middle + 110, top), (middle + 110, top + 130)]
        shield += [(middle, bottom), (middle - 110, top + 130)]
        draw.polygon(shield, ground, (90, 90, 96), 6)
        draw_charge(draw, (middle, top + 112), 62, entity.look.charge, ink, ground)
        return
    draw.ellipse((middle - 132, top + 6, middle + 132, top + 270), ground, (90, 90, 96), 6)
    draw_charge(draw, (middle, top + 138), 72, entity.look.charge, ink, ground)
