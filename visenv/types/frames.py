"""Decodes frames of video files with OpenCV on demand.

OpenCV's decoders run in a child process with limits (`visenv.decoding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.child_process.host import ChildLimits
from visenv.decoding.decoder import DecoderError, DecoderProcess, Source
from visenv.decoding.pictures import MAX_PIXELS
from visenv.errors import ImageError

OPENCV = DecoderProcess(
    "OpenCV",
    "visenv.decoding.child.video:VideoTarget",
    ChildLimits(call_s=120.0, memory_bytes=3 * 2**30, data_bytes=2 * 2**30, processor_s=60.0),
)
"""The decoder of videos. A frame of 8K needs 0.5 GiB."""


class VideoFacts(NamedTuple):
    """Holds the data of the header of a video file.

    Attributes:
        frames: The number of frames; an estimate for some containers.
        rate: Frames per second; 0 if unknown.
        width: Width in pixels.
        height: Height in pixels.
    """

    frames: int
    rate: float
    width: int
    height: int


def video_facts(path: str) -> VideoFacts:
    """Return the data of the header of a video file.

    Raises:
        ImageError: If the file is missing, is not a video, or exceeds a limit of the decoder.
    """
    result, _ = _call("facts", path)
    frames, rate, width, height = result["facts"]
    return VideoFacts(max(int(frames), 0), max(rate, 0.0), int(width), int(height))


def frame_times(path: str, numbers: Sequence[int]) -> list[float]:
    """Return the times of frames in seconds, from the container; the first frame has the time 0.

    The file is read, but not decoded. If the container has no times, they follow from the mean
    rate.

    Args:
        path: The video file.
        numbers: The numbers of the frames, from 0.

    Raises:
        ImageError: If the file is missing, is not a video, or exceeds a limit of the decoder.
    """
    result, _ = _call("times", path, numbers=list(numbers))
    times: list[float] = result["times"]
    if times:
        return times
    rate = video_facts(path).rate
    return [number / rate for number in numbers]


def decode_frame(path: str, number: int) -> NDArray[np.uint8]:
    """Return one frame in the format of OpenCV, uint8 BGR ``[height, width, 3]``; see `to_rgb`.

    Args:
        path: The video file.
        number: The number of the frame, from 0.

    Raises:
        ImageError: If the file is not a video, has no such frame, or exceeds a limit.
    """
    _, arrays = _call("frame", path, number=number, most=MAX_PIXELS)
    return np.asarray(arrays["frame"], np.uint8)


def to_rgb(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return BGR pixels as RGB."""
    from visenv.opencv import cv2

    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)


def _call(method: str, path: str, **request: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Call a method of `visenv.decoding.child.video.VideoTarget`."""
    try:
        result, arrays = OPENCV.call(method, Source.of_file(Path(path)), **request)
    except DecoderError as error:
        raise ImageError(f"{path} {error}.") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains NUL
        raise ImageError(f"{path} is not a video that can be read: {error}.") from error
    if "problem" in result:
        raise ImageError(f"{path} {result['problem']}.")
    return result, arrays
