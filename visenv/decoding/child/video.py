"""Decodes frames of video files with OpenCV, in a child process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .target import Arrays, ContentError, DecoderTarget, OpenSources

_MOST_OPEN = 4
_SKIPPED_AT_MOST = 64
"""Maximum number of frames that are decoded and dropped instead of seeking: a seek starts to decode
at a key frame.
"""

_MOST_FRAMES = 10_000_000
"""Maximum number of frames whose times are read."""

Reply = tuple[dict[str, Any], dict[str, Any]]


class _Reader:
    """Holds an open video file and the number of its next frame."""

    def __init__(self, path: str) -> None:
        import cv2

        self._cv2: Any = cv2
        self._path = path
        self._times: list[float] | None = None
        self.capture: Any = cv2.VideoCapture(path)
        self.next = 0
        if not self.capture.isOpened():
            self.capture.release()
            raise ContentError("is not a video that can be read")

    def facts(self) -> list[float]:
        """Return frames, rate, width and height; 0 for a value that is not finite."""
        properties = ("FRAME_COUNT", "FPS", "FRAME_WIDTH", "FRAME_HEIGHT")
        values = [self.capture.get(getattr(self._cv2, f"CAP_PROP_{each}")) for each in properties]
        return [value if abs(value) < float("inf") else 0.0 for value in values]

    def times(self) -> list[float]:
        """Return the time of each frame in seconds, from the packets of the container.

        The packets are not decoded. The result is empty if the container has no times.
        """
        if self._times is None:
            cv2 = self._cv2
            packets = cv2.VideoCapture(self._path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_FORMAT, -1])
            found: list[float] = []
            while len(found) < _MOST_FRAMES and packets.grab():
                found.append(packets.get(cv2.CAP_PROP_POS_MSEC) / 1000)
            packets.release()
            self._times = sorted(found)
        return self._times

    def frame(self, number: int) -> Any:
        """Return the frame as BGR, or None if it does not exist."""
        if not self.next <= number <= self.next + _SKIPPED_AT_MOST:
            self._seek(number)
        while self.next < number:
            if not self.capture.grab():
                return None
            self.next += 1
        found, pixels = self.capture.read()
        self.next += 1
        return pixels if found else None

    def _seek(self, number: int) -> None:
        """Go to a frame, or to one before it.

        OpenCV computes the place of a frame from the mean rate. If the rate varies, the time of the
        frame that was found tells its number.
        """
        times, rate = self.times(), self.facts()[1]
        if _is_regular(times, rate):
            self.capture.set(self._cv2.CAP_PROP_POS_FRAMES, number)
            self.next = number
            return
        back = 2
        place = int(times[number] * rate) if number < len(times) else 0
        while place > 0:
            place = max(0, place - back)
            back *= 8
            self.capture.set(self._cv2.CAP_PROP_POS_FRAMES, place)
            if not self.capture.grab():
                continue
            now = self.capture.get(self._cv2.CAP_PROP_POS_MSEC) / 1000
            found = min(range(len(times)), key=lambda each: abs(times[each] - now))
            if found < number:
                self.next = found + 1
                return
        self.capture.release()
        self.capture = self._cv2.VideoCapture(self._path)
        self.next = 0


def _is_regular(times: Sequence[float], rate: float) -> bool:
    """Return whether each frame has the time that follows from its number and the mean rate."""
    if not times or rate <= 0:
        return True
    tolerance = 0.5 / rate
    return all(abs(time - times[0] - k / rate) < tolerance for k, time in enumerate(times))


class VideoTarget(DecoderTarget):
    """Keeps the videos that were used last open, so that later frames are decoded without seeking.

    Every request has ``key`` and ``path`` (`OpenSources.get`).
    """

    def start(self, options: Any) -> None:
        """Import OpenCV."""
        import cv2  # noqa: F401

        self._readers: OpenSources[_Reader] = OpenSources(
            _MOST_OPEN, lambda path: _Reader(str(path)), lambda reader: reader.capture.release()
        )

    def facts(self, request: Any, arrays: Arrays) -> Reply:
        """Return ``facts``: frames, rate, width and height."""
        return {"facts": self._readers.get(request, arrays).facts()}, {}

    def times(self, request: Any, arrays: Arrays) -> Reply:
        """Return ``times``: seconds of each frame in ``numbers``, or an empty list."""
        times = self._readers.get(request, arrays).times()
        numbers = request["numbers"]
        if any(number >= len(times) for number in numbers):
            return {"times": []}, {}
        return {"times": [round(times[number] - times[0], 6) for number in numbers]}, {}

    def frame(self, request: Any, arrays: Arrays) -> Reply:
        """Return the array ``frame``, BGR, uint8 ``[height, width, 3]``.

        The request has ``number`` and ``most``, the most pixels.
        """
        number, most = request["number"], request["most"]
        for _ in range(2):  # some decoders cannot go back once they have read the last frame
            pixels = self._readers.get(request, arrays).frame(number)
            if pixels is not None:
                height, width = pixels.shape[:2]
                if height * width > most:
                    raise ContentError(
                        f"has a frame {number} of {width}x{height} pixels; at most {most:,} are "
                        "decoded"
                    )
                return {}, {"frame": pixels}
            self._readers.drop(request["key"])
        raise ContentError(f"has no frame {number}; the file may be truncated")
