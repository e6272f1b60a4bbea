"""Defines `Image`, a handle to a picture: decoded at most once, identified by its pixels' hash."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.decoding import pictures
from visenv.decoding.files import read_regular
from visenv.decoding.pictures import MAX_PIXELS
from visenv.decoding.rgb import upright_size
from visenv.errors import ImageError

_CHEAP_BYTES = 1 << 20

Pixels = NDArray[np.uint8]
"""RGB pixels, uint8 ``[height, width, 3]``."""


class Image:
    """Represents one RGB image by reference.

    Use `from_file`, `from_bytes` or `from_pixels`. A file is opened when its size or its pixels are
    first read; the decoded array is kept, read-only, and shared by all users. Two handles are equal
    if their pixels are equal.
    """

    __slots__ = (
        "__weakref__",
        "_encoded",
        "_frame",
        "_path",
        "_pixels",
        "_sha256",
        "_shrunk",
        "_size",
        "name",
    )

    def __init__(
        self,
        *,
        path: Path | None,
        encoded: bytes | None,
        pixels: Pixels | None,
        name: str,
        frame: int | None = None,
    ) -> None:
        self._path = path
        self._frame = frame
        self._encoded = encoded
        self._pixels = pixels
        self._size: tuple[int, int] | None = None
        self._sha256: str | None = None
        self._shrunk: Image | None = None
        self.name = name

    @classmethod
    def from_file(cls, path: str | Path, sha256: str | None = None) -> Image:
        """Return a handle to an image file; the file is not opened yet.

        Args:
            path: The file.
            sha256: The hash of its pixels, which is then trusted and never computed.
        """
        image = cls(path=Path(path), encoded=None, pixels=None, name=str(path))
        image._sha256 = sha256
        return image

    @classmethod
    def from_frame(cls, path: str | Path, number: int) -> Image:
        """Return a handle to frame `number` (from 0) of a video file, without opening the file."""
        name = f"frame {number} of {path}"
        return cls(path=Path(path), encoded=None, pixels=None, name=name, frame=number)

    @classmethod
    def from_bytes(cls, encoded: bytes, name: str = "image bytes") -> Image:
        """Return a handle to an encoded image (PNG, JPEG, …) in memory; errors use `name`."""
        return cls(path=None, encoded=encoded, pixels=None, name=name)

    @classmethod
    def from_pixels(cls, pixels: Pixels) -> Image:
        """Return a handle to an array, uint8 ``[height, width, 3]``; it is frozen, not copied.

        Raises:
            ImageError: If the array is not a uint8 RGB image with at least one pixel.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise ImageError(
                "Expected a non-empty uint8 array [height, width, 3], "
                f"got {pixels.dtype} {list(pixels.shape)}."
            )
        pixels.flags.writeable = False
        return cls(path=None, encoded=None, pixels=pixels, name="array")

    @property
    def size(self) -> tuple[int, int]:
        """Return ``(width, height)`` of the upright image, read from the header without decoding.

        Raises:
            ImageError: If the file is missing, is not an image, or exceeds `MAX_PIXELS`.
        """
        if self._size is None:
            if self._frame is not None:
                self._size = self._frame_size()
            elif self._pixels is not None:
                height, width = self._pixels.shape[:2]
                self._size = (width, height)
            else:
                with pictures.open_picture(self._source(), self.name) as opened:
                    self._size = upright_size(opened)
        return self._size

    @property
    def pixels(self) -> Pixels:
        """Return the decoded image, uint8 ``[height, width, 3]``, read-only and shared.

        The image is upright, and transparent parts are white (`visenv.decoding.rgb`).

        Raises:
            ImageError: If it cannot be decoded.
        """
        if self._pixels is None and self._frame is not None:
            from visenv.types.frames import to_rgb

            self._pixels = to_rgb(self._decoded_frame())
            self._pixels.flags.writeable = False
        if self._pixels is None:
            with pictures.open_picture(self._source(), self.name) as opened:
                decoded = pictures.decode(opened, self.name)
            decoded.flags.writeable = False
            self._pixels = decoded
        return self._pixels

    def shrunk(self, size: tuple[int, int]) -> Image:
        """Return a smaller copy, computed by averaging areas, which avoids aliasing.

        The last copy is kept, because all episodes of a group show an image in the same size. A
        video frame that was not decoded in full size before is not kept in that size: 32 frames of
        640 by 480 pixels need 29 MB. It is decoded again if its full size is requested later.

        Args:
            size: ``(width, height)``, no larger than this image.

        Raises:
            ImageError: If it cannot be decoded.
        """
        from visenv.opencv import cv2

        if self._shrunk is not None and self._shrunk.size == size:
            return self._shrunk
        is_bgr = self._pixels is None and self._frame is not None
        pixels = self._decoded_frame() if is_bgr else self.pixels
        small = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        if is_bgr:  # converts the smaller copy, which is faster
            from visenv.types.frames import to_rgb

            small = to_rgb(small)
        shrunk = Image.from_pixels(small)
        if self._pixels is not None:  # a frame, whose full size is not kept, keeps no copy either
            self._shrunk = shrunk
        return shrunk

    @property
    def sha256(self) -> str:
        """Return the hash of size and pixels, hexadecimal, independent of the encoding."""
        if self._sha256 is None:
            pixels = self.pixels
            digest = hashlib.sha256(repr(pixels.shape).encode())
            digest.update(np.ascontiguousarray(pixels).data)
            self._sha256 = digest.hexdigest()
        return self._sha256

    @property
    def cheap_to_hash(self) -> bool:
        """Return whether `sha256` needs no decoding and takes at most about a millisecond."""
        small = self._pixels is not None and self._pixels.nbytes <= _CHEAP_BYTES
        return small or self._sha256 is not None

    def png(self) -> bytes:
        """Return the image as a PNG file, lossless."""
        import PIL.Image

        buffer = io.BytesIO()
        PIL.Image.fromarray(self.pixels).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()

    def in_memory(self) -> Image:
        """Return the same image in a form that needs no file, to be sent to other machines.

        Raises:
            ImageError: If the file cannot be read.
        """
        if self._path is None:
            return self
        if self._frame is not None:
            return Image.from_bytes(self.png(), self.name)
        try:
            encoded = read_regular(self._path, pictures.MOST_BYTES)
            return Image.from_bytes(encoded, self.name)
        except (OSError, ValueError) as error:  # ValueError: the name contains NUL
            raise ImageError(f"{self.name} cannot be read: {error}.") from error

    def _decoded_frame(self) -> Pixels:
        """Return a video frame in the format of OpenCV, BGR."""
        from visenv.types.frames import decode_frame

        _ = self.size  # raises if the image is too large
        return decode_frame(str(self._path), self._frame or 0)

    def _frame_size(self) -> tuple[int, int]:
        from visenv.types.frames import video_facts

        facts = video_facts(str(self._path))
        if facts.width * facts.height > MAX_PIXELS:
            raise ImageError(
                f"{self.name} has {facts.width}x{facts.height} pixels; at most {MAX_PIXELS:,} are "
                "decoded."
            )
        return facts.width, facts.height

    def _source(self) -> Path | bytes:
        return self._path if self._path is not None else self._encoded or b""

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Image):
            return NotImplemented
        return self is other or (self.size == other.size and self.sha256 == other.sha256)

    @override
    def __hash__(self) -> int:
        return hash(self.sha256)

    @override
    def __repr__(self) -> str:
        return f"Image({self.name!r})"

    @override
    def __getstate__(self) -> dict[str, Any]:
        keeps_source = self._path is not None or self._encoded is not None
        return {
            "path": self._path,
            "encoded": self._encoded,
            "pixels": None if keeps_source else self._pixels,
            "name": self.name,
            "frame": self._frame,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        if self._pixels is not None:
            self._pixels.flags.writeable = False
