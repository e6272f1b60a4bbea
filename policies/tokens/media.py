"""Converts images and videos to tokens and patches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.types import Image, Video, Visual

from .positions import Span, rope_positions
from .video import TokenRun, VideoEncoder
from .vision import ImageEncoder, ImagePatches


class MediaSpan(NamedTuple):
    """Describes an image or a video in a stream.

    Attributes:
        item: The image or the video.
        start: Index of its first token.
        end: Index after its last token.
        spans: The runs of its placeholders; a video with text in between has several.
    """

    item: Visual
    start: int
    end: int
    spans: tuple[Span, ...]


class Media:
    """Holds the encoders of one checkpoint.

    Args:
        images: Encoder of images.
        image_id: The placeholder token of an image.
        videos: Encoder of videos; None shows videos as their frames.

    Attributes:
        images: The encoder of images.
        videos: The encoder of videos, or None.
        placeholders: All tokens that are replaced by features.
    """

    def __init__(
        self, images: ImageEncoder, image_id: int, videos: VideoEncoder | None = None
    ) -> None:
        self.images = images
        self.videos = videos
        self._image_id = image_id
        self.placeholders = (image_id,) if videos is None else (image_id, videos.placeholder)

    @property
    def merge(self) -> int:
        """Return the patches per placeholder along one side."""
        return self.images.merge

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
        return token_ids, MediaSpan(item, start, start + len(token_ids), spans)

    def positions(self, length: int, spans: Iterable[Span]) -> NDArray[np.int64]:
        """Return the M-RoPE positions of a stream, int64 ``[3, length]``; see `rope_positions`."""
        rate = 1.0 if self.videos is None else self.videos.tokens_per_second
        return rope_positions(length, spans, self.merge, rate)

    def _runs(self, item: Visual, start: int) -> Sequence[TokenRun]:
        if isinstance(item, Video):
            assert self.videos is not None, "sessions without it show frames"
            return self.videos.runs(item, start)
        span = self.images.span(item, start, self._image_id)
        return [TokenRun([self._image_id] * span.length, span)]
