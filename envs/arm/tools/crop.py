"""Crops and enlarges a part of any image of the episode (ARM-Thinker, §3.1 and appendix E)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ConfigurationError, ToolError, UnknownNameError
from visenv.images import QWEN_PIXELS, Window, cut, scale_window, shrink, size_within
from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown
from visenv.tools.crop_box import MOST_ASPECT, ThinBoxes, enlarged, fit_box, smart_size
from visenv.types import Image, Sample

Dialect = Literal["qwen2.5", "qwen3"]

ORIGINAL_IMAGE = "original_image"
"""Name of the sample's first image; the others are ``original_image_1``, ``original_image_2``, …"""

SCALE = 1000
"""Side of an image in the coordinates of a box."""

Box = Annotated[
    list[Annotated[float, Field(ge=0, le=SCALE, allow_inf_nan=False)]],
    Field(
        min_length=4,
        max_length=4,
        description="[x1, y1, x2, y2]: the part to show, from its top left to its bottom right "
        "corner, each from 0 to 1000 of the image's width or height.",
    ),
]


class CropArguments(Arguments):
    """Holds the arguments of `CropZoom` in the dialect of Qwen2.5-VL."""

    image: str = Field(
        description="Name of the image to zoom into: original_image, observation_1, …"
    )
    bbox_2d: Box

    def image_name(self, store: Store) -> str:
        """Return the name of the requested image."""
        return self.image


class IndexedCropArguments(Arguments):
    """Holds the arguments of `CropZoom` in the dialect of Qwen3-VL, which uses image indices."""

    bbox_2d: Box
    label: str = Field(description="What is to be seen in that part.")
    img_idx: int = Field(
        ge=0, description="Which image to zoom into, in the order they were shown, the first is 0."
    )

    def image_name(self, store: Store) -> str:
        """Return the name of the requested image.

        Raises:
            ToolError: If there is no such image; the message lists the available ones.
        """
        names = list(store.images)
        if self.img_idx < len(names):
            return names[self.img_idx]
        there = ", ".join(f"{place} ({name})" for place, name in enumerate(names)) or "no image"
        raise ToolError(f"There is no image {shown(self.img_idx)}. Available: {there}.")


class Region(NamedTuple):
    """Describes a picture as a part of an image, in native pixels of the image.

    Attributes:
        name: The name of the image.
        image: The native image.
        part: The part of `image` that the picture shows.
    """

    name: str
    image: Image
    part: Window


class CropZoom(Tool[CropArguments | IndexedCropArguments]):
    """Shows a part of any image of the episode, cut from native pixels and enlarged if small.

    The sample's own images are called `ORIGINAL_IMAGE` and so on. A crop is always cut from their
    native pixels, even if they or earlier crops were shown at a smaller size, so that zooming into
    a crop reveals detail that the crop did not show. Another image (a page) is cut as stored.

    A crop with a side below 224 pixels is enlarged twice, bicubic. In the dialect of Qwen3-VL it is
    resized to multiples of 32 pixels, at least 256 x 32 x 32 of them, as Qwen's own tool does.

    The tool rejects, with the expected and the given value: arguments that are missing, unknown or
    of a wrong type; a box of other than four finite numbers from 0 to 1000; corners in the wrong
    order; an image that does not exist (the message lists the others); a box that cannot be shown.

    Args:
        dialect: ``"qwen2.5"`` (arguments ``image, bbox_2d``; sides of at least 28 pixels), or
            ``"qwen3"`` (``bbox_2d, label, img_idx``; at least 32).
        max_pixels: Maximum number of pixels of the result. It should not exceed the limit of
            shown images; otherwise the environment shrinks the result, and zooms into it are cut
            from the shrunk image.
        compat: ``"arm"`` works like the public tool for Qwen2.5: it cuts from the stored picture,
            whose sides are first rounded to multiples of 28 pixels, and grows boxes in proportion,
            which rejects thin ones (`visenv.tools.crop_box.fit_box`).

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """

    name = "image_zoom_in_tool"
    description = (
        "Shows a part of an image enlarged, with more detail. The part is a box in relative "
        "coordinates from 0 to 1000: [250, 250, 750, 750] is the middle of the image. What it "
        "returns is an image again, which can be zoomed into by its own name."
    )

    def __init__(
        self,
        *,
        dialect: Dialect = "qwen2.5",
        max_pixels: int = QWEN_PIXELS,
        compat: Literal["arm"] | None = None,
    ) -> None:
        if dialect not in get_args(Dialect):
            raise UnknownNameError("dialect of the zoom tool", str(dialect), get_args(Dialect))
        if compat not in (None, "arm"):
            raise UnknownNameError("compat", str(compat), ["arm"])
        if max_pixels < 1:
            raise ConfigurationError(f"max_pixels must be at least 1, got {max_pixels!r}.")
        indexed = dialect == "qwen3"
        self.arguments = IndexedCropArguments if indexed else CropArguments
        self.min_side = 32 if indexed else 28
        self.indexed = indexed
        self.max_pixels = max_pixels
        self.compat = compat
        self._natives: dict[str, Image] = {}
        self._shown: list[tuple[Image, Region]] = []

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the handles of the sample's images, without decoding them."""
        self._natives = {original_name(k): image for k, image in enumerate(sample.images)}
        self._shown = []

    @override
    def call(self, arguments: CropArguments | IndexedCropArguments, store: Store) -> ToolResult:
        """Cut and enlarge.

        The result's ``detail`` contains ``image`` (the name of the image zoomed into),
        ``shown_box`` (the crop in pixels of that image as stored), ``origin`` (the name of the
        native image that it was finally cut from), ``box`` (in native pixels of the origin),
        ``scale`` (pixels of the result per native pixel) and ``enlarged`` (pixels of the result per
        pixel of the origin as stored); boxes are ``[left, top, right, bottom]``.

        Raises:
            ToolError: If the box or the image cannot be used.
        """
        box = arguments.bbox_2d
        if not (box[0] < box[2] and box[1] < box[3]):
            raise ToolError(
                "bbox_2d is [x1, y1, x2, y2], the top left and the bottom right corner: x1 < x2 "
                f"and y1 < y2, got {shown(box)}."
            )
        name = arguments.image_name(store)
        picture = store.image(name)
        region = self.region_of(name, picture)
        source, within = region.image, region.part
        if self.compat:
            source = self._rounded(picture)
            within = Window.whole(source.size)
        window = self._fit(box, within.size, name)
        result = self._result(source, window.inside(within))
        part = scale_window(window, within.size, region.part.size).inside(region.part)
        self._shown.append((result, region._replace(part=part)))
        scale = result.size[0] / part.size[0]
        detail = {
            "image": name,
            "shown_box": list(scale_window(window, within.size, picture.size)),
            "origin": region.name,
            "box": list(part),
            "scale": round(scale, 3),
            "enlarged": round(scale * region.image.size[0] / store.image(region.name).size[0], 3),
        }
        return ToolResult((result, _caption(window, within.size, name)), detail)

    @override
    def end_episode(self) -> None:
        self._natives = {}
        self._shown = []

    @override
    def example(self) -> CropArguments | IndexedCropArguments:
        box = [250.0, 250.0, 750.0, 750.0]
        if self.indexed:
            return IndexedCropArguments(bbox_2d=box, label="the sign", img_idx=0)
        return CropArguments(image=ORIGINAL_IMAGE, bbox_2d=box)

    @override
    def random_arguments(
        self, rng: np.random.Generator, store: Store
    ) -> CropArguments | IndexedCropArguments:
        """Return a random box of a random image, at least a tenth of each side."""
        place = int(rng.integers(max(1, len(store.images))))
        left, top = rng.integers(0, SCALE - 100, 2)
        right, bottom = rng.integers(left + 100, SCALE + 1), rng.integers(top + 100, SCALE + 1)
        box = [float(edge) for edge in (left, top, right, bottom)]
        if self.indexed:
            return IndexedCropArguments(bbox_2d=box, label="something", img_idx=place)
        names = list(store.images) or [ORIGINAL_IMAGE]
        return CropArguments(image=names[place], bbox_2d=box)

    def region_of(self, name: str, picture: Image) -> Region:
        """Return the region of the picture of that name in native pixels."""
        for result, region in self._shown:
            if result is picture:
                return region
        native = self._natives.get(name)
        image = native if native is not None and _alike(native.size, picture.size) else picture
        return Region(name, image, Window.whole(image.size))

    def _rounded(self, picture: Image) -> Image:
        """Return the picture as Qwen's loader resizes it for the published tool."""
        size = smart_size(picture.size, 28, 4 * 28 * 28, QWEN_PIXELS)
        if size == picture.size:
            return picture
        return _bicubic(picture, Window.whole(picture.size), size)

    def _fit(self, box: Sequence[float], size: tuple[int, int], name: str) -> Window:
        edges = [edge / SCALE * size[place % 2] for place, edge in enumerate(box)]
        thin: ThinBoxes = "keep_aspect" if self.compat else "pad_thin_side"
        window = fit_box(edges, size, self.min_side, thin)
        if window is None:
            covered = f"{edges[2] - edges[0]:.4g} x {edges[3] - edges[1]:.4g}"
            raise ToolError(
                f"The box {shown(box)} covers {covered} pixels of {name}, which has {size[0]} x "
                f"{size[1]}. It cannot be widened to {self.min_side} pixels a side with one side "
                f"at most {MOST_ASPECT} times the other. Name a larger box, or another image."
            )
        return window

    def _result(self, source: Image, window: Window) -> Image:
        size = enlarged(window.size)
        if self.indexed:
            size = smart_size(window.size, 32, 256 * 32 * 32, QWEN_PIXELS)
        size = size_within(size, self.max_pixels)
        if size[0] > window.size[0] or size[1] > window.size[1]:
            return _bicubic(source, window, size)
        pixels = source.pixels[window.top : window.bottom, window.left : window.right]
        return Image.from_pixels(np.array(pixels) if size == window.size else shrink(pixels, size))


def original_name(place: int) -> str:
    """Return the name of the sample's image with that index, from 0."""
    return f"{ORIGINAL_IMAGE}_{place}" if place else ORIGINAL_IMAGE


def _alike(native: tuple[int, int], stored: tuple[int, int]) -> bool:
    """Return whether one size can be a resized version of the other: equal ratios, rounded."""
    return abs(stored[0] * native[1] - stored[1] * native[0]) <= sum(native)


def _bicubic(source: Image, window: Window, size: tuple[int, int]) -> Image:
    import PIL.Image

    resized = cut(source, window).resize(size, PIL.Image.Resampling.BICUBIC)
    return Image.from_pixels(np.asarray(resized))


def _caption(window: Window, size: tuple[int, int], name: str) -> str:
    """Return the shown box in the policy's coordinates; it differs from the request if it grew."""
    edges = [round(window[edge] / size[edge % 2] * SCALE) for edge in range(4)]
    return f"This is {edges} of {name}."
