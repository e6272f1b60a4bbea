"""Defines `Video`, frames of one scene with their times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from visenv.errors import DataError
from visenv.types.image import Image


@dataclass(frozen=True)
class Video:
    """Represents a sequence of frames with times.

    A policy whose model has video tokens sends the frames as one video. Other policies, and the
    plain observation, show the frames as images.

    Attributes:
        frames: The frames in order, at least one, all of the same size.
        times: Seconds from the start of the video, one for each frame, increasing.

    Raises:
        DataError: If there is no frame, the counts differ, or the times are not finite and
            increasing.
    """

    frames: tuple[Image, ...]
    times: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.frames or len(self.frames) != len(self.times):
            raise DataError(
                f"A video needs at least 1 frame and one time for each frame, got "
                f"{len(self.frames)} frames and {len(self.times)} times."
            )
        increasing = all(a < b for a, b in zip(self.times, self.times[1:], strict=False))
        if not increasing or not all(map(math.isfinite, self.times)):
            raise DataError(f"Times of a video must be finite and increase, got {self.times}.")

    def replace_frames(self, change: Callable[[Image], Image]) -> Video:
        """Return the same video with each frame replaced by ``change(frame)``."""
        return Video(tuple(map(change, self.frames)), self.times)

    @cached_property
    def sha256(self) -> str:
        """Return the hash of all frames and times, hexadecimal."""
        digest = hashlib.sha256()
        for frame, time in zip(self.frames, self.times, strict=True):
            digest.update(f"{frame.sha256} {time.hex()}\n".encode())
        return digest.hexdigest()
