"""Keypoint zoom (Groundlight, arXiv 2506.14821, §2.1): a square around a point, enlarged."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from visenv.errors import ConfigurationError, ToolError, UnknownNameError
from visenv.images import (
    QWEN_PIXELS,
    Window,
    cut,
    scale_window,
    size_with_long_side,
    size_within,
)
from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown
from visenv.types import Image, Sample

if TYPE_CHECKING:
    import PIL.Image

CropShape = Literal["square", "wide", "tall"]
CropSource = Literal["view", "native"]
KeypointSource = Literal["policy", "random"]

INPUT_IMAGE = "input_image"
"""The only image that can be zoomed: what the environment stored as shown to the policy."""


class ZoomArguments(Arguments):
    """What the policy writes."""

    keypoint: Annotated[
        list[int],
        Field(
            min_length=2,
            max_length=2,
            description="[x, y], two integers: where to look, in pixels of the input image, "
            "x from its left edge and y from its top edge.",
        ),
    ]


class KeypointZoom(Tool[ZoomArguments]):
    """Cut a window around a keypoint of the input image and enlarge it to the input's size.

    Args:
        crop_side: Side of the square window, in pixels of the image as shown.
        shape: ``"square"``, or a window of the same area twice as wide (``"wide"``) or twice as
            tall (``"tall"``) as the other way.
        source: ``"view"`` cuts from the image as shown, ``"native"`` from the sample's own, which
            may be larger and then adds detail.
        max_pixels: Most pixels of the result.
        keypoint_source: ``"random"`` looks at a random point, fixed by the sample's id, whatever
            valid point the policy names: the control that tells whether looking at the right place
            matters.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
    """

    name = "zoom"
    description = (
        "Shows a part of the input image enlarged: a square around the keypoint you name, scaled "
        "up to the size of the input image. Use it when something is too small to make out."
    )
    arguments = ZoomArguments

    def __init__(
        self,
        *,
        crop_side: int = 400,
        shape: CropShape = "square",
        source: CropSource = "view",
        max_pixels: int = QWEN_PIXELS,
        keypoint_source: KeypointSource = "policy",
    ) -> None:
        _check_choice("crop shape", shape, get_args(CropShape))
        _check_choice("crop source", source, get_args(CropSource))
        _check_choice("keypoint source", keypoint_source, get_args(KeypointSource))
        if crop_side < 2 or max_pixels < 1:
            raise ConfigurationError(
                f"crop_side must be at least 2 and max_pixels at least 1, got {crop_side!r} and "
                f"{max_pixels!r}."
            )
        self.crop_side = crop_side
        self.shape: CropShape = shape
        self.source = source
        self.max_pixels = max_pixels
        self.keypoint_source = keypoint_source
        self._native: Image | None = None
        self._rng = np.random.default_rng(0)

    def reset(self, sample: Sample, store: Store) -> None:
        """Take the handle of the sample's image, without decoding it."""
        self._native = sample.images[0] if sample.images else None
        self._rng = np.random.default_rng(list(hashlib.sha256(sample.id.encode()).digest()))

    def call(self, arguments: ZoomArguments, store: Store) -> ToolResult:
        """Cut and enlarge.

        The result's ``detail`` holds ``image`` (the name of the image zoomed into), ``keypoint``
        (the point looked at) and ``shown_box`` in pixels of the image as shown, and ``box``,
        ``[left, top, right, bottom]`` in native pixels.

        Raises:
            ToolError: If there is no input image, or the keypoint is outside it.
        """
        view = store.image(INPUT_IMAGE)
        keypoint = self._keypoint(arguments, view.size)
        window = crop_window(view.size, keypoint, self.crop_side, self.shape)
        native = self._native or view
        native_window = scale_window(window, view.size, native.size)
        from_native = self.source == "native"
        part = cut(native, native_window) if from_native else cut(view, window)
        size = size_with_long_side(window.size, max(*view.size, self.crop_side))
        detail = {
            "image": INPUT_IMAGE,
            "keypoint": list(keypoint),
            "shown_box": list(window),
            "box": list(native_window),
        }
        return ToolResult((_resample(part, size_within(size, self.max_pixels)),), detail)

    def end_episode(self) -> None:
        """Release the image."""
        self._native = None

    def example(self) -> ZoomArguments:
        """Arguments to show in the prompt."""
        return ZoomArguments(keypoint=[420, 180])

    def random_arguments(self, rng: np.random.Generator, store: Store) -> ZoomArguments:
        """A uniformly random point of the input image."""
        return ZoomArguments(keypoint=_random_point(rng, store.image(INPUT_IMAGE).size))

    def _keypoint(self, arguments: ZoomArguments, size: tuple[int, int]) -> tuple[int, int]:
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


def crop_window(
    size: tuple[int, int], keypoint: tuple[int, int], side: int, shape: CropShape = "square"
) -> Window:
    """The window around a keypoint, moved into the image, cut down where the image is smaller.

    Args:
        size: ``(width, height)`` of the image, pixels.
        keypoint: ``(x, y)``, inside the image.
        side: Side of the square; ``"wide"`` and ``"tall"`` have its area and the ratio 2:1.
        shape: Of the window.
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
    """Resample in one go with the paper's kernel, LANCZOS."""
    import PIL.Image

    return Image.from_pixels(np.asarray(part.resize(size, PIL.Image.Resampling.LANCZOS)))


def _random_point(rng: np.random.Generator, size: tuple[int, int]) -> list[int]:
    return [int(rng.integers(size[0])), int(rng.integers(size[1]))]


def _check_choice(what: str, given: Any, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UnknownNameError(what, str(given), known)
