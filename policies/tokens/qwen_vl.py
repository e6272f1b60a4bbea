"""Defines the family of Qwen2.5-VL and Qwen3-VL, whose segments can be packed into one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Image, ImageSpan, Video, Visual

from .family import Checkpoint, MediaSpan, ModelFamily, Span, VideoMode
from .positions import rope_positions
from .video import TokenRun, VideoEncoder
from .vision import ImageEncoder, ImagePatches


class QwenVL:
    """Holds the encoders of one checkpoint. The class is a `ModelFamily`.

    Args:
        name: The type of the model.
        images: Encoder of images.
        image_id: The placeholder token of an image.
        videos: Encoder of videos; None shows videos as their frames.

    Attributes:
        images: The encoder of images.
        videos: The encoder of videos, or None.
    """

    packs = True

    def __init__(
        self, name: str, images: ImageEncoder, image_id: int, videos: VideoEncoder | None = None
    ) -> None:
        self.name = name
        self.images = images
        self.videos = videos
        self._image_id = image_id

    @property
    def template_ids(self) -> tuple[int, ...]:
        """Return the placeholders: the template writes them, and the model replaces them."""
        return self.placeholder_ids

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """Return the placeholder of an image, and that of a video if videos are shown natively."""
        return (self._image_id, *([] if self.videos is None else [self.videos.placeholder]))

    @property
    def takes_videos(self) -> bool:
        """Return whether videos are shown natively."""
        return self.videos is not None

    def fingerprint(self, with_videos: bool) -> str:
        """Return a fingerprint of the processors and their settings, for images or for both."""
        if not with_videos or self.videos is None:
            return self.images.fingerprint
        return f"{self.images.fingerprint}+{self.videos.fingerprint}"

    def check(self, items: Iterable[Visual]) -> None:
        """Decode images and videos; see `ImageEncoder.check` and `VideoEncoder.check`.

        Raises:
            ImageError: If one of them cannot be shown.
        """
        for item in items:
            if isinstance(item, Image):
                self.images.check([item])
            elif self.videos is not None:
                self.videos.check([item])

    def prepare(self, items: Sequence[Visual]) -> None:
        """Process all new images in one call, and all new videos in one call."""
        self.encode(items)

    def encode(self, items: Sequence[Visual]) -> dict[str, ImagePatches]:
        """Return the patches of each distinct image and video, by its hash."""
        images = {item.sha256: item for item in items if isinstance(item, Image)}
        patches = dict(zip(images, self.images.encode([*images.values()]), strict=True))
        if self.videos is not None:
            videos = {item.sha256: item for item in items if isinstance(item, Video)}
            patches |= zip(videos, self.videos.encode([*videos.values()]), strict=True)
        return {item.sha256: patches[item.sha256] for item in items}

    def show(self, item: Visual, start: int) -> tuple[list[int], MediaSpan]:
        """Return the tokens of an image or a video whose first token has the index `start`."""
        runs = self._runs(item, start)
        token_ids = [token for run in runs for token in run.token_ids]
        spans = tuple([run.span for run in runs if run.span is not None])
        return token_ids, MediaSpan(
            item, start, start + len(token_ids), spans, spans[0].placeholder_id
        )

    def inputs(self, items: Sequence[Visual]) -> dict[str, torch.Tensor]:
        """Return the patches and grids of the images and videos of a batch, as arguments."""
        encoded = self.encode(items)
        found: dict[str, torch.Tensor] = {}
        for kind, values, grids in (
            (Image, "pixel_values", "image_grid_thw"),
            (Video, "pixel_values_videos", "video_grid_thw"),
        ):
            shown = [encoded[item.sha256] for item in items if isinstance(item, kind)]
            if shown:
                found[values] = torch.cat([patches.values for patches in shown])
                found[grids] = torch.tensor([patches.grid for patches in shown])
        return found

    def token_types(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 1 for placeholders of images, 2 for those of videos, and 0 for other tokens."""
        types = np.zeros_like(token_ids)
        for kind, placeholder in enumerate(self.placeholder_ids, 1):
            types[token_ids == placeholder] = kind
        return types

    def positions(
        self, length: int, spans: Sequence[Span], items: Mapping[str, Visual]
    ) -> NDArray[np.int64]:
        """Return the M-RoPE positions of a stream, int64 ``[3, length]``; see `rope_positions`."""
        grids = [
            self._grid(items[span.sha256]) if isinstance(span, ImageSpan) else span.grid
            for span in spans
        ]
        rate = 1.0 if self.videos is None else self.videos.tokens_per_second
        return rope_positions(length, spans, grids, self.images.merge, rate)

    def vision(self, model: Any) -> list[torch.nn.Parameter]:
        """Return the parameters of the vision tower."""
        return list(model.model.visual.parameters())

    def _grid(self, item: Visual) -> tuple[int, int, int]:
        assert isinstance(item, Image), "an image span has the hash of an image"
        return self.images.grid(item)

    def _runs(self, item: Visual, start: int) -> Sequence[TokenRun]:
        if isinstance(item, Video):
            assert self.videos is not None, "sessions without it show frames"
            return self.videos.runs(item, start)
        span = self.images.span(item, start, self._image_id)
        return [TokenRun([self._image_id] * span.length, span)]


def qwen_vl(
    checkpoint: Checkpoint,
    *,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    video: VideoMode | None = None,
    image_encoder: Callable[[Any, int], ImageEncoder] = ImageEncoder,
    capacity: int = 2**30,
) -> QwenVL:
    """Return the family of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit.
        video: How videos are shown; None is native if the checkpoint supports it, otherwise frames.
        image_encoder: Makes the encoder of images from the image processor and the capacity.
        capacity: Maximum number of bytes of cached patches of images, and again of videos.

    Raises:
        PolicyError: If videos cannot be shown natively as requested; the message says why.
        ConfigurationError: If `min_pixels` exceeds `max_pixels`.
    """
    image_processor = checkpoint.processor.image_processor
    _limit_pixels(image_processor, min_pixels, max_pixels)
    return QwenVL(
        checkpoint.config.model_type,
        image_encoder(image_processor, capacity),
        checkpoint.template.image_id,
        None if video == "frames" else _videos(checkpoint, capacity, required=video == "native"),
    )


def require_qwen_vl(family: ModelFamily) -> QwenVL:
    """Return a family as `QwenVL`.

    Raises:
        PolicyError: If it is another family; the message names it.
    """
    if isinstance(family, QwenVL):
        return family
    raise PolicyError(
        f"Models of the type {family.name!r} cannot be packed; Qwen2.5-VL and Qwen3-VL can."
    )


def _limit_pixels(image_processor: Any, smallest: int | None, largest: int | None) -> None:
    size = {
        "shortest_edge": smallest or image_processor.size["shortest_edge"],
        "longest_edge": largest or image_processor.size["longest_edge"],
    }
    if size["shortest_edge"] > size["longest_edge"]:
        raise ConfigurationError(
            f"min_pixels {size['shortest_edge']} exceeds max_pixels {size['longest_edge']}."
        )
    image_processor.size = size  # both edges are pixel counts in Qwen's processors


def _videos(checkpoint: Checkpoint, capacity: int, *, required: bool) -> VideoEncoder | None:
    """Return the encoder of videos, or None if they can only be shown as frames."""
    rate = getattr(checkpoint.config.vision_config, "tokens_per_second", 1.0)
    try:
        checkpoint.template.require_video()
        return VideoEncoder(checkpoint.processor, rate, capacity)
    except (PolicyError, ConfigurationError) as error:
        if required:
            raise PolicyError(
                f"{checkpoint.name} cannot show videos natively, only as frames (video='frames'): "
                f"{error}"
            ) from error
        return None
