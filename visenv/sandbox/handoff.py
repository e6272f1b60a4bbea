"""Passes images and results to and from a sandbox as shared memory, without copies.

A memory file (memfd) has no name in any file system, and is passed as a descriptor. The kernel
enforces its seals: inputs cannot be changed, and outputs cannot grow.
"""

from __future__ import annotations

import fcntl
import io
import os
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.errors import ImageError
from visenv.types import Image, Pixels

_JPEG_QUALITY = 95


def sealed(content: bytes | memoryview) -> int:
    """Return a descriptor of a memory file with this content, which can no longer be changed."""
    view = memoryview(content).cast("B")
    memory = empty(len(view))
    try:
        written = 0
        while written < len(view):
            written += os.pwrite(memory, view[written:], written)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(memory)
        raise
    return memory


def empty(size: int) -> int:
    """Return a descriptor of a memory file of exactly `size` bytes for a program to write to.

    The file uses no memory before it is written to.
    """
    memory = os.memfd_create("visenv", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(memory, size)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except BaseException:
        os.close(memory)
        raise
    return memory


def seal_writing(memories: Iterable[int]) -> bool:
    """Seal these files against writing; return False if a process has mapped one for writing."""
    try:
        for memory in memories:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    except OSError:
        return False
    return True


def taken(memory: int, size: int) -> bytes:
    """Return the first `size` bytes."""
    return os.pread(memory, size, 0)


def taken_pixels(memory: int, height: int, width: int) -> Pixels:
    """Return a copy of the pixels that a program wrote, uint8 ``[height, width, 3]``."""
    pixels = np.empty((height, width, 3), np.uint8)
    view = pixels.data.cast("B")
    done = 0
    while done < len(view):
        done += os.preadv(memory, [view[done:]], done)
    return pixels


def encoded(image: Image, name: str) -> bytes:
    """Return the image as a file of the type of its name: PNG (lossless) or JPEG (4:4:4)."""
    import PIL.Image

    buffer = io.BytesIO()
    picture = PIL.Image.fromarray(image.pixels)
    if name.lower().endswith(".png"):
        picture.save(buffer, "PNG", compress_level=1)
    else:
        picture.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return buffer.getvalue()


class SharedImage:
    """Holds an image whose pixels any number of programs map, without a copy for each program.

    The constructor copies the pixels once (an 8K image has 100 MB). The time to pass them to a
    program does not depend on their size. Close the image after use, or use it as a context
    manager.

    Args:
        image: The image whose pixels are shared.

    Raises:
        ImageError: If the image cannot be decoded.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self.size = image.size
        self._lock = threading.Lock()
        self._memory: int | None = sealed(np.ascontiguousarray(image.pixels).data)

    def descriptor(self) -> int:
        """Return a new descriptor of the pixels, which the caller closes.

        Raises:
            ImageError: If the image was closed.
        """
        with self._lock:
            if self._memory is None:
                raise ImageError(f"The shared image {self.image.name} was closed.")
            return os.dup(self._memory)

    def close(self) -> None:
        """Release the memory; running programs keep their mapping."""
        with self._lock:
            if self._memory is not None:
                os.close(self._memory)
            self._memory = None

    def __enter__(self) -> SharedImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return (SharedImage, (self.image,))
