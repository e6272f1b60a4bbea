"""Runs the model's video processor, which converts videos to patches and placeholder tokens.

Qwen2.5-VL shows a video as one run of placeholders, and encodes its time by M-RoPE. Qwen3-VL shows
one run for each step of the grid, preceded by its time as text. A step consists of two frames; an
odd last frame is repeated. Grid and text are those of the checkpoint's own processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from cachetools import LRUCache
from numpy.typing import NDArray

from visenv.errors import ImageError, PolicyError
from visenv.private_names import check_private_names
from visenv.types import Image, Video, VideoSpan

from .family import Span
from .fingerprint import fingerprint_of
from .private_names import VIDEO_NAMES
from .vision import ImagePatches, check_shape

_TICKS = 1000
"""Processors represent times as numbers of frames; here a frame is a millisecond."""


class TokenRun(NamedTuple):
    """Represents consecutive tokens: text, or placeholders of an image or a video.

    Attributes:
        token_ids: The tokens, with expanded placeholders.
        span: The span of the placeholders, None for text.
    """

    token_ids: list[int]
    span: Span | None = None


class VideoEncoder:
    """Runs the video processor, and caches its results by `Video.sha256`.

    Args:
        processor: The processor of the model.
        tokens_per_second: M-RoPE positions per second, for runs of several steps.
        capacity: Maximum number of bytes of cached videos; the least recently used are dropped
            first.

    Attributes:
        placeholder: The token that is replaced by features of a video.
        tokens_per_second: M-RoPE positions per second.
        fingerprint: Identifies the processor, its class, its backend and all its settings.

    Raises:
        PolicyError: If the checkpoint has no video processor on this machine.
        ConfigurationError: If transformers lacks a private name that is used for videos.
    """

    def __init__(self, processor: Any, tokens_per_second: float, capacity: int = 2**30) -> None:
        video_processor = getattr(processor, "video_processor", None)
        if video_processor is None:
            raise PolicyError(
                f"{type(processor).__name__} has no video processor: install torchvision, or set "
                'video="frames" for the policy.'
            )
        check_private_names(VIDEO_NAMES)
        self._processor = processor
        self._frames: Any = video_processor
        self._known: LRUCache[str, ImagePatches] = LRUCache(capacity, lambda one: one.values.nbytes)
        self._grids: LRUCache[tuple[int, int, int], tuple[int, int, int]] = LRUCache(1024)
        self.placeholder: int = processor.tokenizer.convert_tokens_to_ids(processor.video_token)
        self.tokens_per_second = tokens_per_second
        self.fingerprint = fingerprint_of(video_processor)

    def check(self, videos: Iterable[Video]) -> None:
        """Decode videos, so that a broken video fails its own episode and not a batch.

        Raises:
            ImageError: If a frame cannot be decoded, frames differ in size, or are too narrow.
        """
        for video in videos:
            sizes = {frame.pixels.shape[:2] for frame in video.frames}
            if len(sizes) > 1:
                shown = ", ".join(f"{width}x{height}" for height, width in sorted(sizes))
                raise ImageError(f"The frames of a video must have one size, these have {shown}.")
            check_shape(video.frames[0])
            try:
                self._grid(video)
            except ValueError as error:
                raise ImageError(
                    f"The video processor does not take this video: {error}"
                ) from error

    def encode(self, videos: Sequence[Video]) -> list[ImagePatches]:
        """Return the patches of each video; videos that are not cached are processed together."""
        known = {video.sha256: self._known.get(video.sha256) for video in videos}
        missing = {video.sha256: video for video in videos if known[video.sha256] is None}
        for sha256, made in zip(missing, self._process(list(missing.values())), strict=True):
            known[sha256] = made
            with suppress(ValueError):  # a video larger than the cache is not cached
                self._known[sha256] = made
        return [patches for video in videos if (patches := known[video.sha256]) is not None]

    def runs(self, video: Video, offset: int) -> list[TokenRun]:
        """Return the runs of tokens of a video, in order.

        Args:
            video: The video.
            offset: Index of its first token.
        """
        steps, height, width = self._grid(video)
        size = height * width // self._frames.merge_size**2  # placeholders of one step
        seconds = self._seconds_per_step(video)
        runs: list[TokenRun] = []
        step = 0
        for token_ids in self._parts(video, steps):
            if token_ids[0] != self.placeholder:
                runs.append(TokenRun(token_ids))
            else:
                count = len(token_ids)
                span = VideoSpan(
                    offset,
                    count * size,
                    video.sha256,
                    (count, height, width),
                    self.placeholder,
                    seconds,
                    step,
                )
                runs.append(TokenRun([self.placeholder] * span.length, span))
                step += count
            offset += len(runs[-1].token_ids)
        return runs

    def _parts(self, video: Video, steps: int) -> list[list[int]]:
        """Return the tokens of a video, one placeholder per step, split into texts and runs."""
        merge = self._frames.merge_size
        least = torch.tensor([steps, merge, merge])  # the smallest grid: a step is one placeholder
        said = {"video_grid_thw": [least], "video_metadata": [self._metadata(video)]}
        text = self._processor.replace_video_token(said, 0)
        tokens = self._processor.tokenizer(text, add_special_tokens=False)["input_ids"]
        parts: list[list[int]] = []
        for token in tokens:
            if not parts or (token == self.placeholder) != (parts[-1][0] == self.placeholder):
                parts.append([])
            parts[-1].append(token)
        return parts

    def _seconds_per_step(self, video: Video) -> float:
        """Return the seconds between two steps, in float32 as in processors."""
        rate = self._metadata(video).sampled_fps
        return float(np.float32(self._frames.temporal_patch_size / rate))

    def _grid(self, video: Video) -> tuple[int, int, int]:
        """Return the grid of a video, without processing its pixels."""
        width, height = video.frames[0].size
        shape = (len(shown_frames(video)), height, width)
        if shape not in self._grids:
            blank = torch.empty((shape[0], 3, height, width), dtype=torch.uint8, device="meta")
            (self._grids[shape],) = self._run([blank], [video])["video_grid_thw"].tolist()
        steps, rows, across = self._grids[shape]
        return steps, rows, across

    def _process(self, videos: Sequence[Video]) -> list[ImagePatches]:
        if not videos:
            return []
        # Results from sampling are used in training later, so they must not be inference tensors.
        with torch.inference_mode(mode=False):
            pixels = [torch.from_numpy(pixels_of(video)) for video in videos]
            made = self._run(pixels, videos)
            grids = [tuple(grid) for grid in made["video_grid_thw"].tolist()]
            sizes = [int(np.prod(grid)) for grid in grids]
            values = torch.split(made["pixel_values_videos"].float(), sizes)
            return [
                ImagePatches(own.clone(), grid) for own, grid in zip(values, grids, strict=True)
            ]

    def _run(self, pixels: Sequence[torch.Tensor], videos: Sequence[Video]) -> Any:
        return self._frames(
            videos=[*pixels],
            video_metadata=[self._metadata(video) for video in videos],
            do_sample_frames=False,
            return_tensors="pt",
        )

    def _metadata(self, video: Video) -> Any:
        from transformers.video_utils import VideoMetadata

        return VideoMetadata(**facts_of(video))


def shown_frames(video: Video) -> tuple[Image, ...]:
    """Return the frames for a processor: at least two, which Qwen3-VL requires."""
    return video.frames * 2 if len(video.frames) == 1 else video.frames


def pixels_of(video: Video) -> NDArray[np.uint8]:
    """Return the pixels of a video, a new uint8 ``[frames, 3, height, width]``.

    Channels come first for the reason that `visenv.images.channels_first` gives.
    """
    # [height, width, 3] of each frame becomes [3, height, width].
    frames = [frame.pixels.transpose(2, 0, 1) for frame in shown_frames(video)]
    return np.stack(frames)  # [frames, 3, height, width]


def facts_of(video: Video) -> dict[str, Any]:
    """Return the fields of transformers' `VideoMetadata` that contain the times of a video.

    The length is the mean distance between frames times the number of frames. A processor that
    derives the frame rate from it thus gets that of the frames, even if they cover only a part of a
    file.
    """
    times = video.times if len(video.times) > 1 else video.times * 2
    distance = (times[-1] - times[0]) / (len(times) - 1) or 1.0
    return {
        "total_num_frames": max(round(_TICKS * distance * len(times)), 1),
        "fps": float(_TICKS),
        "frames_indices": [round(_TICKS * time) for time in times],
    }
