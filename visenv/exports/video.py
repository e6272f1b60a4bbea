"""Writes frames with times as a video file: MP4, or an animated WebP."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from visenv.errors import ConfigurationError
from visenv.files import replacing
from visenv.types import Pixels

CODEC = "mp4v"
"""The codec of MP4 files, MPEG-4 Part 2, the only one that OpenCV's wheels can write. Most browsers
do not play it, but they play WebP."""

LAST_FRAME_S = 1.0
"""Seconds for which a WebP file shows the last frame before the animation starts again."""


def write_video(
    path: str | Path, frames: Sequence[Pixels], times: Sequence[float], rate: int
) -> Path:
    """Write frames to ``*.mp4`` or ``*.webp`` and return the path.

    Each frame is shown until the time of the next one. An MP4 file has a constant rate, so that a
    frame is repeated for the steps of ``1 / rate`` seconds until the next one.

    Args:
        path: The file; its suffix selects the format.
        frames: At least one frame, uint8 ``[height, width, 3]``, all of the same size. The sides of
            the frames of an MP4 file must be even.
        times: The time of each frame in seconds, increasing.
        rate: Frames per second of an MP4 file.

    Raises:
        ConfigurationError: If the suffix is another one, there is no frame, the sizes or counts
            differ, a side is odd, or `path` is a link.
    """
    path = Path(path)
    if path.suffix not in (".mp4", ".webp"):
        raise ConfigurationError(f"A video must be named *.mp4 or *.webp, got {path.name!r}.")
    if not frames or len(frames) != len(times) or len({frame.shape for frame in frames}) != 1:
        raise ConfigurationError(
            "A video needs at least one frame, frames of one size, and one time for each frame, "
            f"got {len(frames)} frames and {len(times)} times."
        )
    write = _write_mp4 if path.suffix == ".mp4" else _write_webp
    with replacing(path) as partial:
        write(partial, frames, times, rate)
    return path


def _write_mp4(path: Path, frames: Sequence[Pixels], times: Sequence[float], rate: int) -> None:
    from visenv.opencv import cv2

    height, width, _ = frames[0].shape
    if height % 2 or width % 2:
        raise ConfigurationError(
            f"The sides of an MP4 file must be even, got {width} x {height}; write *.webp instead."
        )
    # The suffix selects OpenCV's container; the name of a temporary file has another one.
    written = path.with_name(f"{path.name}.mp4")
    writer = cv2.VideoWriter(str(written), cv2.VideoWriter.fourcc(*CODEC), rate, (width, height))
    try:
        if not writer.isOpened():
            raise ConfigurationError(f"OpenCV cannot write {CODEC} here; write *.webp instead.")
        for frame, shown in zip(frames, _durations(times, 1 / rate), strict=True):
            for _ in range(max(round(shown * rate), 1)):
                writer.write(np.ascontiguousarray(frame[..., ::-1]))  # OpenCV's order is BGR
        writer.release()
        written.replace(path)
    finally:
        writer.release()
        written.unlink(missing_ok=True)


def _write_webp(path: Path, frames: Sequence[Pixels], times: Sequence[float], rate: int) -> None:
    import PIL.Image

    pictures = [PIL.Image.fromarray(frame) for frame in frames]
    pictures[0].save(
        path,
        "WEBP",
        save_all=True,
        append_images=pictures[1:],
        duration=[max(round(1000 * shown), 1) for shown in _durations(times, LAST_FRAME_S)],
        loop=0,
        quality=80,
    )


def _durations(times: Sequence[float], last: float) -> list[float]:
    """Return the seconds for which each frame is shown."""
    return [after - before for before, after in pairwise(times)] + [last]
