"""Reads boxes in the forms and units of data sets, and converts them to pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from visenv.data.json_rows import written_list
from visenv.errors import DataError
from visenv.types.ground_truth import Box

UNITS = {"0-1": 1.0, "0-1000": 1000.0}
"""The number that means the whole side of the image, by the name of the unit."""

_OUTSIDE = 0.05
"""Share of a side by which a box may leave the image; it is then clipped."""


def read_boxes(value: Any, *, is_xywh: bool) -> tuple[Box, ...]:
    """Return the boxes of a cell, empty for an empty cell; see `box_list`."""
    return () if value is None or value in ("", []) else box_list(value, is_xywh=is_xywh)


def box_list(value: Any, *, is_xywh: bool) -> tuple[Box, ...]:
    """Return the boxes of a cell as ``(left, top, right, bottom)``, in the unit of the cell.

    Args:
        value: Four numbers, a list of these, or the same as JSON or Python text.
        is_xywh: Whether the last two numbers are width and height.

    Raises:
        DataError: If the value is something else, or a box has no area.
    """
    if isinstance(value, str):
        value = written_list(value)
    if not isinstance(value, list | tuple):
        raise DataError(f"a box must be four numbers, got {value!r:.80}")
    listed = [value] if value and not isinstance(value[0], list | tuple) else value
    boxes: list[Box] = []
    for box in listed:
        if len(box) != 4 or not all(_is_number(side) for side in box):
            raise DataError(f"a box must be four numbers, got {box!r:.80}")
        left, top, right, bottom = box
        if is_xywh:
            right, bottom = left + right, top + bottom
        if right <= left or bottom <= top:
            form = "xywh" if is_xywh else "xyxy"
            raise DataError(
                f"the box {box!r:.80} has no area in the form {form}; the option 'boxes' is xyxy "
                "or xywh"
            )
        boxes.append((left, top, right, bottom))
    return tuple(boxes)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -1e9 < value < 1e9


def check_scale(boxes: Sequence[Box], scale: str) -> None:
    """Check that boxes can have this unit, as far as that is visible without the image.

    Raises:
        DataError: If they cannot; the message names the option ``scale``.
    """
    largest = max(max(box) for box in boxes)
    lowest = min(min(box) for box in boxes)
    if scale == "pixels":
        if largest <= 1 and any(side != int(side) for box in boxes for side in box):
            raise DataError(
                f"the box {boxes[0]} lies within one pixel; set the option scale=0-1 if its "
                "numbers are shares of the sides"
            )
    elif largest > UNITS[scale] * (1 + _OUTSIDE) or lowest < -UNITS[scale] * _OUTSIDE:
        raise DataError(
            f"the box {boxes[0]} is outside the image if scale={scale}; the option 'scale' is "
            "pixels, 0-1 or 0-1000"
        )


def in_pixels(box: Box, scale: str, size: tuple[int, int]) -> Box:
    """Return a box in pixels of the image, clipped.

    Raises:
        DataError: If more than 5 % of a side of the image lies between the box and the image.
    """
    unit = UNITS.get(scale)
    factors = (1.0, 1.0) if unit is None else (size[0] / unit, size[1] / unit)
    sides = [float(side) * factors[edge % 2] for edge, side in enumerate(box)]
    for edge, side in enumerate(sides):
        limit = size[edge % 2]
        if side < -_OUTSIDE * limit or side > (1 + _OUTSIDE) * limit:
            raise DataError(
                f"the box {box} is outside the image of {size[0]}x{size[1]} pixels if "
                f"scale={scale}; the option 'scale' is pixels, 0-1 or 0-1000"
            )
        sides[edge] = min(max(side, 0.0), float(limit))
    left, top, right, bottom = sides
    if right <= left or bottom <= top:
        raise DataError(f"the box {box} has no area inside the image of {size[0]}x{size[1]} pixels")
    return left, top, right, bottom
