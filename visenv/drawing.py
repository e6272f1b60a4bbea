"""Draws points, boxes and a title on an image, for people who watch an episode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from visenv.types import Image, Pixels

_INK, _PAPER, _SPOT, _FRAME = (255, 255, 255), (0, 0, 0), (255, 45, 111), (255, 0, 255)
_MOST_CHARACTERS = 300
_LEAST_WIDTH = 240


def annotated(
    image: Image,
    title: str = "",
    points: Iterable[tuple[float, float, str]] = (),
    boxes: Iterable[Sequence[float]] = (),
) -> Pixels:
    """Return a copy of an image with points and boxes, below a strip with the title.

    Args:
        image: The image; not changed.
        title: A text; the strip has as many lines as it needs, up to 300 characters.
        points: x, y and label of each point, pixels of the image.
        boxes: Left, top, right and bottom of each box, pixels of the image.

    Returns:
        uint8 ``[height, width, 3]``, at least 240 pixels wide if there is a title.
    """
    import PIL.Image
    from PIL.ImageDraw import Draw

    canvas = PIL.Image.fromarray(np.array(image.pixels))
    draw = Draw(canvas)
    width, height = canvas.size
    size = max(9, min(width, height) // 32)
    radius = max(3, size // 4)
    for box in boxes:
        left, top, right, bottom = box
        draw.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=_FRAME)
    for x, y, label in points:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_SPOT, outline=_INK)
        draw.text((x + radius + 1, y - size / 2), label[:40], fill=_SPOT, font_size=size)
    if not title:
        return np.asarray(canvas)
    return _below(title, canvas, size)


def _below(title: str, canvas: Any, size: int) -> Pixels:
    """Return the image below a strip with the text."""
    import textwrap

    import PIL.Image
    from PIL.ImageDraw import Draw

    width = max(_LEAST_WIDTH, canvas.width)
    text = " ".join(title.split())[:_MOST_CHARACTERS]
    lines = textwrap.wrap(text, max(8, int(width / (0.6 * size)))) or [""]
    strip = (size + 4) * len(lines) + 4
    whole = PIL.Image.new("RGB", (width, strip + canvas.height), _PAPER)
    whole.paste(canvas, (0, strip))
    draw = Draw(whole)
    for number, line in enumerate(lines):
        draw.text((3, 3 + number * (size + 4)), line, fill=_INK, font_size=size)
    return np.asarray(whole)
