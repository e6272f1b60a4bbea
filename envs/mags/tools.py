"""Implements the magnifier as a tool, which cuts boxes from the native image and enlarges them."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ToolError
from visenv.grammar.zoom_in_think import TOOL
from visenv.images import Window
from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown
from visenv.types import Image, Part, Sample

from .boxes import (
    LEAST_SIDE,
    MOST_AREA,
    MOST_BOXES,
    MOST_OVERLAP,
    CheckedBox,
    check_boxes,
    native_window,
)
from .magnifier.magnify import Magnifier

INPUT_IMAGE = "image"
"""Name of the shown image, whose pixels the boxes refer to; the prompt gives it no name."""

Boxes = Literal["policy", "random"]
Crops = Literal["shown", "hidden"]

ALL_REJECTED = "The zoom failed: no box is valid."
NOT_SHOWN = "The crops are not shown."


class BoxesArguments(Arguments):
    """Holds the boxes that the policy writes."""

    boxes: Annotated[
        list[Any],
        Field(
            min_length=1,
            description="Boxes [x1, y1, x2, y2] in pixels of the image: left, top, right, bottom.",
        ),
    ]


class ZoomSettings(NamedTuple):
    """Sets the options of a zoom.

    Attributes:
        crop_pixels: Maximum number of pixels of one enlarged crop.
        most_overlap: The highest IoU of a valid box with an earlier one; 1 allows duplicates.
        boxes: ``"random"`` cuts at a random position, with the size of the policy's box, as a
            control.
        crops: ``"hidden"`` shows no crop, as a control.
    """

    crop_pixels: int
    most_overlap: float = MOST_OVERLAP
    boxes: Boxes = "policy"
    crops: Crops = "shown"


class MultiBoxZoom(Tool[BoxesArguments]):
    """Cuts every valid box from the native image and enlarges it.

    The result contains the crops in order, and one line about each rejected box. If no box is
    valid, the call fails. ``detail`` contains ``image``, ``written`` and ``valid`` (numbers of
    boxes), ``duplicates``, and ``boxes``: for each checked box ``shown_box`` (pixels of the image
    as shown, or None), ``box`` (native pixels of the crop, or None) and ``problem``.

    Args:
        magnifier: Enlarges crops.
        settings: The options of a zoom.
    """

    name = TOOL
    description = (
        "The magnifier shows boxes of the image enlarged. A box must lie inside the image, cover "
        f"less than {MOST_AREA:.0%} of it and have sides of at least {LEAST_SIDE} pixels."
    )
    arguments = BoxesArguments

    def __init__(self, magnifier: Magnifier, settings: ZoomSettings) -> None:
        self.magnifier = magnifier
        self.settings = settings
        self._native: Image | None = None
        self._rng = np.random.default_rng(0)

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the handle of the native image, without decoding it."""
        self._native = sample.images[0] if sample.images else None
        self._rng = np.random.default_rng(list(hashlib.sha256(sample.id.encode()).digest()))

    @override
    async def call(self, arguments: BoxesArguments, store: Store) -> ToolResult:
        """Cut and enlarge.

        Raises:
            ToolError: If there is no input image.
            ServiceError: If the magnifier's network failed.
        """
        view, native = store.image(INPUT_IMAGE), self._native
        if native is None:
            raise ToolError("There is no image to zoom into.")
        checked = check_boxes(arguments.boxes, view.size, self.settings.most_overlap)
        windows = [self._window(each, view.size, native.size) for each in checked]
        detail = _detail(arguments.boxes, checked, windows)
        cut = [window for window in windows if window is not None]
        notes = _notes(arguments.boxes, checked)
        if not cut:
            text = "\n".join([ALL_REJECTED, *notes])
            return ToolResult((text,), detail, ok=False, reason=text)
        if self.settings.crops == "hidden":
            return ToolResult((NOT_SHOWN, *notes), detail)
        crops: list[Part] = list(
            await asyncio.gather(
                *(self.magnifier.enlarge(native, each, self.settings.crop_pixels) for each in cut)
            )
        )
        return ToolResult((*crops, *notes), detail)

    @override
    def end_episode(self) -> None:
        self._native = None

    @override
    def example(self) -> BoxesArguments:
        return BoxesArguments(boxes=[[40, 60, 120, 130], [200, 80, 260, 150]])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> BoxesArguments:
        """Return one to three random boxes of the input image, at most half as wide and high."""
        size = store.image(INPUT_IMAGE).size
        return BoxesArguments(boxes=[_random_box(rng, size) for _ in range(rng.integers(1, 4))])

    def _window(
        self, checked: CheckedBox, view: tuple[int, int], native: tuple[int, int]
    ) -> Window | None:
        if checked.problem or checked.box is None:
            return None
        window = native_window(checked.box, view, native)
        if self.settings.boxes == "policy":
            return window
        width, height = window.size
        left = int(self._rng.integers(native[0] - width + 1))
        top = int(self._rng.integers(native[1] - height + 1))
        return Window(left, top, left + width, top + height)


def _detail(
    boxes: list[Any], checked: list[CheckedBox], windows: list[Window | None]
) -> dict[str, Any]:
    return {
        "image": INPUT_IMAGE,
        "written": len(boxes),
        "valid": sum(window is not None for window in windows),
        "duplicates": sum(each.duplicate for each in checked),
        "boxes": [
            {
                "shown_box": None if each.box is None else list(each.box),
                "box": None if window is None else list(window),
                "problem": each.problem,
            }
            for each, window in zip(checked, windows, strict=True)
        ],
    }


def _notes(boxes: list[Any], checked: list[CheckedBox]) -> list[str]:
    """Return one line about each rejected box."""
    notes = [
        f"Box {number}, {shown(written)}, was rejected: {each.problem}."
        for number, (written, each) in enumerate(zip(boxes, checked, strict=False), start=1)
        if each.problem
    ]
    if len(boxes) > MOST_BOXES:
        notes.append(f"Only the first {MOST_BOXES} of your {len(boxes)} boxes were examined.")
    return ["\n".join(notes)] if notes else []


def _random_box(rng: np.random.Generator, size: tuple[int, int]) -> list[int]:
    width, height = (int(rng.integers(1, max(2, side // 2 + 1))) for side in size)
    left, top = int(rng.integers(size[0] - width + 1)), int(rng.integers(size[1] - height + 1))
    return [left, top, left + width, top + height]
