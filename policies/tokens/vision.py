"""Runs the model's image processor, which converts images to patches, once for each image."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from cachetools import LRUCache

from visenv.errors import ImageError
from visenv.images import channels_first
from visenv.types import Image, ImageSpan, PlaceholderRun

from .fingerprint import fingerprint_of

_LONGEST_RATIO = 200
"""Largest ratio of the sides that Qwen's image processor accepts."""


class ImagePatches(NamedTuple):
    """Holds one processed image or video.

    Attributes:
        values: float32 ``[patches, channels * time * height * width]``, normalized.
        grid: Number of patches along ``(time, height, width)``.
    """

    values: torch.Tensor
    grid: tuple[int, int, int]


class ImageEncoder:
    """Runs the image processor, and caches its results by the hash of the pixels.

    Args:
        image_processor: The image processor of the model.
        capacity: Maximum number of bytes of cached images; the least recently used are dropped
            first.

    Attributes:
        merge: Patches per placeholder along one side.
        fingerprint: Identifies the processor, its class, its backend and all its settings.
    """

    def __init__(self, image_processor: Any, capacity: int = 2**30) -> None:
        self._processor = image_processor
        self._known: LRUCache[str, ImagePatches] = LRUCache(capacity, _nbytes)
        self._grids: LRUCache[str, tuple[int, int, int]] = LRUCache(2**16)
        self.merge: int = image_processor.merge_size
        self.fingerprint = fingerprint_of(image_processor)

    def check(self, images: Iterable[Image]) -> None:
        """Decode images, so that a broken image fails its own episode and not a batch.

        Raises:
            ImageError: If an image cannot be decoded or is too narrow for the image processor.
        """
        for image in images:
            check_shape(image)

    def encode(self, images: Sequence[Image]) -> list[ImagePatches]:
        """Return the patches of each image; new images are processed together."""
        # Look up before the oldest are dropped, so that a batch may exceed the capacity.
        known = {image.sha256: self._known.get(image.sha256) for image in images}
        missing = {image.sha256: image for image in images if known[image.sha256] is None}
        for sha256, made in zip(missing, self._process(missing.values()), strict=True):
            known[sha256] = made
            self._grids[sha256] = made.grid
            with suppress(ValueError):  # an image larger than the cache is not cached
                self._known[sha256] = made
        return [patches for image in images if (patches := known[image.sha256]) is not None]

    def forget(self) -> None:
        """Drop the cached images."""
        self._known.clear()

    def grid(self, image: Image) -> tuple[int, int, int]:
        """Return the number of patches of an image along ``(time, height, width)``."""
        grid = self._grids.get(image.sha256)
        return self.encode([image])[0].grid if grid is None else grid

    def span(self, image: Image, offset: int, placeholder_id: int) -> ImageSpan:
        """Return the placeholders of an image whose first placeholder has the index `offset`."""
        patches = math.prod(self.grid(image))
        run = PlaceholderRun(offset, patches // self.merge**2)
        return ImageSpan(image.sha256, (run,), placeholder_id, patches)

    def _process(self, images: Iterable[Image]) -> list[ImagePatches]:
        pixels = [channels_first(image) for image in images]
        if not pixels:
            return []
        # Results from sampling are used in training later, so they must not be inference tensors.
        with torch.inference_mode(mode=False):
            processed = self._processor(images=pixels, return_tensors="pt")
            grids = [tuple(grid) for grid in processed["image_grid_thw"].tolist()]
            sizes = [int(np.prod(grid)) for grid in grids]
            # [patches of all images, values of a patch], split into the patches of each image.
            values = torch.split(processed["pixel_values"].float(), sizes)
            # Each image gets its own memory, so that dropping it frees the memory.
            return [
                ImagePatches(own.clone(), grid) for own, grid in zip(values, grids, strict=True)
            ]


def check_shape(image: Image) -> None:
    """Raise `ImageError` if an image cannot be decoded or is too narrow for a model."""
    height, width = image.pixels.shape[:2]
    if max(height, width) > _LONGEST_RATIO * min(height, width):
        raise ImageError(
            f"{image.name} is {width}x{height} pixels; the model takes sides of at most "
            f"{_LONGEST_RATIO} to 1."
        )


def _nbytes(patches: ImagePatches) -> int:
    return patches.values.nbytes
