"""Decodes frames of video files with OpenCV, in a child process."""

from __future__ import annotations

from typing import Any

from .target import Arrays, ContentError, DecoderTarget, OpenSources

_MOST_OPEN = 4
_SKIPPED_AT_MOST = 64
"""Maximum number of frames that are decoded and dropped instead of seeking: a seek starts to decode
at a key frame.
"""

Reply = tuple[dict[str, Any], dict[str, Any]]


class _Reader:
    """Holds an open video file and the number of its next frame."""

    def __init__(self, path: str) -> None:
        import cv2

        self._cv2: Any = cv2
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

    def frame(self, number: int) -> Any:
        """Return the frame as BGR, or None if it does not exist."""
        if not self.next <= number <= self.next + _SKIPPED_AT_MOST:
            self.capture.set(self._cv2.CAP_PROP_POS_FRAMES, number)
            self.next = number
        while self.next < number:
            if not self.capture.grab():
                return None
            self.next += 1
        found, pixels = self.capture.read()
        self.next += 1
        return pixels if found else None


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
