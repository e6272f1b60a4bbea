"""Opens video files as frames with times."""

from __future__ import annotations

from pathlib import Path

from visenv.errors import DataError
from visenv.types import Image
from visenv.types.frames import VideoFacts, frame_times, video_facts


def open_video(path: str | Path, most: int = 32) -> tuple[tuple[Image, ...], tuple[float, ...]]:
    """Return evenly spaced frames of a video file, and their times in seconds.

    The times are those of the container, also if the frame rate varies. No frame is decoded yet.
    If the video has more than `most` frames, the first and the last frame are included.

    Args:
        path: The file.
        most: Maximum number of frames.

    Raises:
        ImageError: If the file is missing or is not a video.
        DataError: If the file has no frame, or an unknown frame rate.
    """
    facts = video_facts(str(path))
    numbers = frame_numbers(facts, str(path), most)
    frames = tuple(Image.from_frame(path, number) for number in numbers)
    return frames, tuple(frame_times(str(path), numbers))


def frame_numbers(facts: VideoFacts, name: str, most: int) -> list[int]:
    """Return the numbers of the frames to show, evenly spaced.

    Raises:
        DataError: If there is no frame, or the frame rate is unknown.
    """
    if facts.frames < 1 or not facts.rate:
        raise DataError(
            f"{name} has {facts.frames} frames at {facts.rate:g} frames in a second; expected a "
            "video of known length and rate."
        )
    if facts.frames <= most:
        return list(range(facts.frames))
    if most == 1:
        return [0]
    return [round(place * (facts.frames - 1) / (most - 1)) for place in range(most)]
