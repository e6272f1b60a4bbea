"""Implements the zooms of Groundlight (arXiv 2506.14821, §2.1), to a keypoint or to a box.

The keypoint is the tool of the paper. The box in JSON is the tool of its preliminary experiments,
which did not help: the model zoomed into regions that were too small.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack, get_args

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ConfigurationError, ToolError
from visenv.images import (
    QWEN_PIXELS,
    Window,
    cut,
    scale_window,
    size_with_long_side,
    size_within,
)
from visenv.presets import check_choice
from visenv.tools.base import Arguments, ArgumentsT, Store, Tool, ToolResult, shown
from visenv.tools.crop_box import MOST_ASPECT, is_too_thin
from visenv.types import Image, Sample

if TYPE_CHECKING:
    import PIL.Image

CropShape = Literal["square", "wide", "tall"]
CropSource = Literal["view", "native"]
KeypointSource = Literal["policy", "random"]
ZoomTool = Literal["keypoint", "json_box"]

INPUT_IMAGE = "input_image"
"""Name of the only image that can be zoomed: the image as shown to the policy."""


class ZoomOptions(TypedDict, total=False):
    """Defines the options of both tools, see `_Zoom`."""

    source: CropSource
    enlarge: bool
    max_pixels: int
    keypoint_source: KeypointSource


class KeypointArguments(Arguments):
    """Holds the arguments of a zoom to a keypoint."""

    keypoint: Annotated[
        list[int],
        Field(
            min_length=2,
            max_length=2,
            description="[x, y], two integers: where to look, in pixels of the input image, "
            "x from its left edge and y from its top edge.",
        ),
    ]


class BoxArguments(Arguments):
    """Holds the arguments of a zoom to a box."""

    bbox: Annotated[
        list[int],
        Field(
            min_length=4,
            max_length=4,
            description="[x1, y1, x2, y2], four integers: the part to show, in pixels of the input "
            "image, from its top left to its bottom right corner.",
        ),
    ]


class _Zoom(Tool[ArgumentsT]):
    """Implements the parts that both tools share: cut a window of the input image, and show it.

    Args:
        source: ``"view"`` cuts from the image as shown, ``"native"`` from the sample's own, which
            may be larger and then adds detail.
        enlarge: Whether the crop is scaled up to the size of the input image; otherwise it is shown
            at the size at which it is cut (the ablation of §3.3).
        max_pixels: Maximum number of pixels of the result.
        keypoint_source: ``"random"`` zooms to a random position, which depends only on the sample's
            id, instead of the valid position that the policy names. This control measures whether
            the position matters.

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """

    name = "zoom"

    def __init__(
        self,
        *,
        source: CropSource = "view",
        enlarge: bool = True,
        max_pixels: int = QWEN_PIXELS,
        keypoint_source: KeypointSource = "policy",
    ) -> None:
        check_choice("crop source", source, get_args(CropSource))
        check_choice("keypoint source", keypoint_source, get_args(KeypointSource))
        if max_pixels < 1:
            raise ConfigurationError(f"max_pixels must be at least 1, got {max_pixels!r}.")
        self.source = source
        self.enlarge = enlarge
        self.max_pixels = max_pixels
        self.keypoint_source = keypoint_source
        self._native: Image | None = None
        self._rng = np.random.default_rng(0)

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the handle of the sample's image, without decoding it."""
        self._native = sample.images[0] if sample.images else None
        self._rng = np.random.default_rng(list(hashlib.sha256(sample.id.encode()).digest()))

    @override
    def end_episode(self) -> None:
        self._native = None

    def _show(self, view: Image, window: Window, detail: dict[str, Any], least: int) -> ToolResult:
        """Cut a window of the view, and enlarge it to the view's long side, but at least `least`.

        If one side of the result is more than `MOST_ASPECT` times the other, `ToolError` is raised.
        """
        native = self._native or view
        native_window = scale_window(window, view.size, native.size)
        from_native = self.source == "native"
        part = cut(native, native_window) if from_native else cut(view, window)
        size = size_with_long_side(window.size, max(*view.size, least))
        size = size_within(size if self.enlarge else part.size, self.max_pixels)
        if is_too_thin(size):
            raise ToolError(
                f"The part {list(window)} cannot be shown, because one side of it is more than "
                f"{MOST_ASPECT} times as long as the other. Name a part that is less thin."
            )
        shown_box, box = list(window), list(native_window)
        named = {"image": INPUT_IMAGE, **detail, "shown_box": shown_box, "box": box}
        return ToolResult((_resample(part, size),), named)


class KeypointZoom(_Zoom[KeypointArguments]):
    """Cuts a window around a keypoint of the input image and enlarges it to the input's size.

    Args:
        crop_side: Side of the square window, in pixels of the image as shown.
        shape: ``"square"``, or a window of the same area twice as wide (``"wide"``) or twice as
            tall (``"tall"``).
        **options: See `_Zoom`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
    """

    description = (
        "Shows a part of the input image enlarged: a square around the keypoint you name, scaled "
        "up to the size of the input image. Use it when something is too small to make out."
    )
    arguments = KeypointArguments

    def __init__(
        self,
        *,
        crop_side: int = 400,
        shape: CropShape = "square",
        **options: Unpack[ZoomOptions],
    ) -> None:
        check_choice("crop shape", shape, get_args(CropShape))
        if crop_side < 2:
            raise ConfigurationError(f"crop_side must be at least 2, got {crop_side!r}.")
        super().__init__(**options)
        self.crop_side = crop_side
        self.shape: CropShape = shape

    @override
    def call(self, arguments: KeypointArguments, store: Store) -> ToolResult:
        """Cut and enlarge.

        The result's ``detail`` contains ``image`` (the name of the image zoomed into), ``keypoint``
        (the center of the zoom) and ``shown_box`` in pixels of the image as shown, and ``box``,
        ``[left, top, right, bottom]`` in native pixels.

        Raises:
            ToolError: If there is no input image, the keypoint is outside it, or the image is so
                thin that one side of the window is more than `MOST_ASPECT` times the other.
        """
        view = store.image(INPUT_IMAGE)
        keypoint = self._keypoint(arguments, view.size)
        window = crop_window(view.size, keypoint, self.crop_side, self.shape)
        return self._show(view, window, {"keypoint": list(keypoint)}, self.crop_side)

    @override
    def example(self) -> KeypointArguments:
        return KeypointArguments(keypoint=[420, 180])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> KeypointArguments:
        """Return a uniformly random point of the input image."""
        return KeypointArguments(keypoint=_random_point(rng, store.image(INPUT_IMAGE).size))

    def _keypoint(self, arguments: KeypointArguments, size: tuple[int, int]) -> tuple[int, int]:
        x, y = arguments.keypoint
        width, height = size
        if not (0 <= x < width and 0 <= y < height):
            raise ToolError(
                f"The keypoint {shown([x, y])} is outside the image, which is {width} wide and "
                f"{height} high: x must be 0 to {width - 1}, y 0 to {height - 1}."
            )
        if self.keypoint_source == "random":
            x, y = _random_point(self._rng, size)
        return x, y


class BoxZoom(_Zoom[BoxArguments]):
    """Cuts a box out of the input image and enlarges it to the input's size; see `_Zoom`."""

    description = (
        "Shows a part of the input image enlarged: the box you name, scaled up to the size of the "
        "input image. Use it when something is too small to make out."
    )
    arguments = BoxArguments

    @override
    def call(self, arguments: BoxArguments, store: Store) -> ToolResult:
        """Cut and enlarge.

        The result's ``detail`` contains ``image``, ``shown_box`` and ``box`` as that of
        `KeypointZoom`.

        Raises:
            ToolError: If there is no input image, the box is not inside it, or one side of the box
                is more than `MOST_ASPECT` times as long as the other.
        """
        view = store.image(INPUT_IMAGE)
        left, top, right, bottom = arguments.bbox
        width, height = view.size
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            raise ToolError(
                f"bbox is [x1, y1, x2, y2] with 0 <= x1 < x2 <= {width} and 0 <= y1 < y2 <= "
                f"{height}, got {shown(arguments.bbox)}."
            )
        window = Window(left, top, right, bottom)
        if self.keypoint_source == "random":
            window = self._elsewhere(window, view.size)
        return self._show(view, window, {}, 1)

    @override
    def example(self) -> BoxArguments:
        return BoxArguments(bbox=[320, 80, 520, 280])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> BoxArguments:
        """Return a box of a third of the sides, anywhere in the input image."""
        width, height = store.image(INPUT_IMAGE).size
        side = Window(0, 0, max(1, width // 3), max(1, height // 3))
        return BoxArguments(bbox=list(_moved(rng, side, (width, height))))

    def _elsewhere(self, window: Window, size: tuple[int, int]) -> Window:
        return _moved(self._rng, window, size)


def crop_window(
    size: tuple[int, int], keypoint: tuple[int, int], side: int, shape: CropShape = "square"
) -> Window:
    """Return the window around a keypoint, moved into the image, and smaller if the image is.

    Args:
        size: ``(width, height)`` of the image, pixels.
        keypoint: ``(x, y)``, inside the image.
        side: Side of the square; ``"wide"`` and ``"tall"`` have its area and the ratio 2:1.
        shape: The shape of the window.
    """
    wanted = {
        "square": (side, side),
        "wide": (round(side * math.sqrt(2)), round(side / math.sqrt(2))),
        "tall": (round(side / math.sqrt(2)), round(side * math.sqrt(2))),
    }[shape]
    width, height = min(wanted[0], size[0]), min(wanted[1], size[1])
    left = min(max(keypoint[0] - width // 2, 0), size[0] - width)
    top = min(max(keypoint[1] - height // 2, 0), size[1] - height)
    return Window(left, top, left + width, top + height)


def _resample(part: PIL.Image.Image, size: tuple[int, int]) -> Image:
    """Resample once with the paper's kernel, LANCZOS."""
    import PIL.Image

    return Image.from_pixels(np.asarray(part.resize(size, PIL.Image.Resampling.LANCZOS)))


def _moved(rng: np.random.Generator, window: Window, size: tuple[int, int]) -> Window:
    """Return a window of the same size at a random position."""
    width, height = window.size
    left, top = int(rng.integers(size[0] - width + 1)), int(rng.integers(size[1] - height + 1))
    return Window(left, top, left + width, top + height)


def _random_point(rng: np.random.Generator, size: tuple[int, int]) -> list[int]:
    return [int(rng.integers(size[0])), int(rng.integers(size[1]))]
