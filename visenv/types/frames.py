"""Decodes frames of video files with OpenCV on demand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visenv.errors import ImageError

if TYPE_CHECKING:
    from visenv.types.image import Pixels

_OPEN_FILES = 4
_SKIPPED_AT_MOST = 64
"""Maximum number of frames that are decoded and dropped instead of seeking: a seek starts to decode
at a key frame.
"""


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


class _Reader:
    """Holds an open video file and the number of its next frame."""

    def __init__(self, path: str) -> None:
        import cv2

        self.capture: Any = cv2.VideoCapture(path)
        self.next = 0
        if not self.capture.isOpened():
            self.capture.release()
            raise ImageError(f"{path} is not a video that can be read.")

    def facts(self) -> VideoFacts:
        import cv2

        found = [
            self.capture.get(key)
            for key in (
                cv2.CAP_PROP_FRAME_COUNT,
                cv2.CAP_PROP_FPS,
                cv2.CAP_PROP_FRAME_WIDTH,
                cv2.CAP_PROP_FRAME_HEIGHT,
            )
        ]
        frames, rate, width, height = (float(each) if np.isfinite(each) else 0.0 for each in found)
        return VideoFacts(max(int(frames), 0), max(rate, 0.0), int(width), int(height))

    def frame(self, number: int) -> Any:
        """Return the frame as BGR, or None if it does not exist."""
        import cv2

        if not self.next <= number <= self.next + _SKIPPED_AT_MOST:
            self.capture.set(cv2.CAP_PROP_POS_FRAMES, number)
            self.next = number
        while self.next < number:
            if not self.capture.grab():
                return None
            self.next += 1
        found, pixels = self.capture.read()
        self.next += 1
        return pixels if found else None


_lock = threading.Lock()
_readers: OrderedDict[str, _Reader] = OrderedDict()


def video_facts(path: str) -> VideoFacts:
    """Return the data of the header of a video file.

    Raises:
        ImageError: If the file is missing or is not a video.
    """
    with _lock:
        return _reader(path).facts()


def decode_frame(path: str, number: int) -> Pixels:
    """Return one frame in the format of OpenCV, uint8 BGR ``[height, width, 3]``; see `to_rgb`.

    The file remains open, so that later frames are decoded without seeking.

    Args:
        path: The video file.
        number: The number of the frame, from 0.

    Raises:
        ImageError: If the file is not a video, or has no such frame.
    """
    with _lock:
        for _ in range(2):  # some decoders cannot go back once they have read the last frame
            pixels = _reader(path).frame(number)
            if pixels is not None:
                return np.asarray(pixels, np.uint8)
            _close(path)
    raise ImageError(f"{path} has no frame {number}; the file may be truncated.")


def to_rgb(pixels: Pixels) -> Pixels:
    """Return BGR pixels as RGB."""
    import cv2

    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)


def _reader(path: str) -> _Reader:
    if path not in _readers:
        _readers[path] = _Reader(path)
        while len(_readers) > _OPEN_FILES:
            _close(next(iter(_readers)))
    _readers.move_to_end(path)
    return _readers[path]


def _close(path: str) -> None:
    _readers.pop(path).capture.release()
