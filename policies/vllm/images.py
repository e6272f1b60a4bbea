"""Computes the size of Qwen-VL's images without processing them; an engine processes them itself.

Other families have no such function: `GenericFamily` runs their processor to count tokens.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.private_names import check_private_names
from visenv.types import Image

from ..tokens.vision import ImageEncoder
from .private_names import IMAGE_NAMES


class ImageMeter(ImageEncoder):
    """Computes the number of placeholders of an image, as an `ImageEncoder` that makes no patches.

    Args:
        image_processor: The image processor of a Qwen-VL model.
        capacity: See `ImageEncoder`.

    Raises:
        ConfigurationError: If transformers lacks the function that computes an image's size.
    """

    def __init__(self, image_processor: Any, capacity: int = 2**30) -> None:
        check_private_names(IMAGE_NAMES)
        from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

        super().__init__(image_processor, capacity)
        self._resize = smart_resize
        self._patch: int = image_processor.patch_size
        self._edges: dict[str, int] = image_processor.size

    @override
    def grid(self, image: Image) -> tuple[int, int, int]:
        """Return the number of patches of an image along ``(time, height, width)``."""
        width, height = image.size
        resized = self._resize(
            height,
            width,
            factor=self._patch * self.merge,
            min_pixels=self._edges["shortest_edge"],
            max_pixels=self._edges["longest_edge"],
        )
        rows, across = (side // self._patch for side in resized)
        return 1, rows, across
