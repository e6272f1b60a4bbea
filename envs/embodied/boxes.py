"""Draws detection boxes in frames, using the rendered ids of objects."""

from __future__ import annotations

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

from visenv.types import Image

from .simulation import HouseSimulation

FEWEST_PIXELS = 12
"""Minimum number of visible pixels of an object with a box."""

_COLOR = (255, 0, 255)


def with_boxes(frame: Image, simulation: HouseSimulation) -> Image:
    """Return a frame with a box and a name around each visible object."""
    drawn = Pillow.fromarray(np.array(frame.pixels))
    pen = ImageDraw.Draw(drawn)
    side = drawn.size[0]
    boxes = simulation.renderer.visible(simulation.state, side, FEWEST_PIXELS)
    for name, (left, top, right, bottom) in boxes.items():
        if name in simulation.house.items:
            pen.rectangle((left, top, right - 1, bottom - 1), outline=_COLOR)
            pen.text((left + 1, max(0, top - 11)), name, fill=_COLOR)
    return Image.from_pixels(np.asarray(drawn))
