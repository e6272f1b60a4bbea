"""Checks boxes that a policy wrote, converts them to windows of the native image, moves boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from visenv.images import Window
from visenv.tools.crop_box import MOST_ASPECT, is_too_thin

MOST_BOXES = 16
"""Maximum number of boxes that are checked; further ones count as written but not as valid."""

MOST_AREA = 0.4
"""A valid box covers less than this share of the image (appendix A of the paper)."""

LEAST_SIDE = 4
"""Minimum width and height of a valid box, pixels of the image as shown."""

MOST_OVERLAP = 0.9
"""By default, a box with a higher IoU to an earlier valid box is a duplicate."""

Numbers = tuple[float, float, float, float]


class CheckedBox(NamedTuple):
    """Holds the result of checking one box.

    Attributes:
        box: ``(x1, y1, x2, y2)`` in pixels of the image as shown, or None if the policy did not
            write four finite numbers.
        problem: The reason why the box is invalid, ``""`` if it is valid.
        duplicate: Whether the only problem is the overlap with an earlier box.
    """

    box: Numbers | None
    problem: str = ""
    duplicate: bool = False


def check_boxes(
    boxes: Sequence[Any], size: tuple[int, int], most_overlap: float = MOST_OVERLAP
) -> list[CheckedBox]:
    """Check the first `MOST_BOXES` boxes.

    Args:
        boxes: The boxes of the policy; the elements may have any type.
        size: ``(width, height)`` of the image as shown.
        most_overlap: A box with a higher IoU to an earlier valid box is a duplicate; 1 allows
            duplicates, as in the paper.
    """
    checked: list[CheckedBox] = []
    for written in boxes[:MOST_BOXES]:
        numbers = _numbers(written)
        if numbers is None:
            checked.append(CheckedBox(None, "it must have four finite numbers"))
        elif problem := _problem(numbers, size):
            checked.append(CheckedBox(numbers, problem))
        elif any(
            each.box is not None and not each.problem and iou(each.box, numbers) > most_overlap
            for each in checked
        ):
            checked.append(CheckedBox(numbers, "it repeats an earlier box", duplicate=True))
        else:
            checked.append(CheckedBox(numbers))
    return checked


def native_window(box: Numbers, shown: tuple[int, int], native: tuple[int, int]) -> Window:
    """Return the whole native pixels that a box of the shown image touches, at least one.

    Args:
        box: A valid box, in pixels of the image as shown.
        shown: ``(width, height)`` of the image as shown.
        native: ``(width, height)`` of the native image.
    """
    across, down = native[0] / shown[0], native[1] / shown[1]
    left = min(math.floor(box[0] * across), native[0] - 1)
    top = min(math.floor(box[1] * down), native[1] - 1)
    right = min(max(math.ceil(box[2] * across), left + 1), native[0])
    bottom = min(max(math.ceil(box[3] * down), top + 1), native[1])
    return Window(left, top, right, bottom)


def iou(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the intersection over union of two boxes with positive areas, 0 to 1."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return 0.0
    both = across * down
    return both / (area(one) + area(other) - both)


def area(box: Sequence[float]) -> float:
    """Return the area of a box."""
    return (box[2] - box[0]) * (box[3] - box[1])


def sides_of(box: Sequence[int]) -> tuple[int, int]:
    """Return the width and the height of a box."""
    return box[2] - box[0], box[3] - box[1]


def moved_box(
    box: Sequence[int], error: Sequence[float], size: tuple[int, int], grid: int
) -> list[int]:
    """Return a box that is moved by an error, in sides of the box.

    A box that would leave the image is moved in the other direction, at most to the edge.
    """
    steps: list[int] = []
    for axis, (by, side) in enumerate(zip(error, sides_of(box), strict=True)):
        step, low, high = grid * round(by * side / grid), -box[axis], size[axis] - box[axis + 2]
        steps.append(min(max(step if low <= step <= high else -step, low), high))
    return [edge + steps[place % 2] for place, edge in enumerate(box)]


def _numbers(written: Any) -> Numbers | None:
    """Return a box as floats; None for other values than four finite numbers."""
    if not isinstance(written, list) or len(written) != 4:
        return None
    if any(isinstance(edge, bool) or not isinstance(edge, int | float) for edge in written):
        return None
    try:
        numbers = tuple(float(edge) for edge in written)
    except OverflowError:  # an integer larger than the largest float
        return None
    if not all(map(math.isfinite, numbers)):
        return None
    return numbers  # type: ignore[return-value]


def _problem(box: Numbers, size: tuple[int, int]) -> str:
    width, height = size
    x1, y1, x2, y2 = box
    if not (x1 < x2 and y1 < y2):
        return "it must have x1 < x2 and y1 < y2"
    if not (x1 >= 0 and y1 >= 0 and x2 <= width and y2 <= height):
        return f"it must lie inside the image, which is {width} x {height} pixels"
    if area(box) >= MOST_AREA * width * height:
        return f"it must cover less than {MOST_AREA:.0%} of the image"
    if min(x2 - x1, y2 - y1) < LEAST_SIDE:
        return f"its sides must be at least {LEAST_SIDE} pixels"
    if is_too_thin((x2 - x1, y2 - y1)):
        return f"one side is more than {MOST_ASPECT} times as long as the other"
    return ""
