"""Opens and decodes encoded images: from a list of formats, and only up to a number of pixels.

The list contains the formats of data sets that Pillow decodes by itself. Pillow's other formats
include some for which it starts another program (PostScript), and containers of other images.
"""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from visenv.decoding.files import open_regular
from visenv.decoding.rgb import PixelError, to_rgb
from visenv.errors import ConfigurationError, ImageError

if TYPE_CHECKING:
    import PIL.Image
    from numpy.typing import NDArray

FORMATS = {
    "PNG": "PngImagePlugin",
    "JPEG": "JpegImagePlugin",
    "MPO": "MpoImagePlugin",
    "WEBP": "WebPImagePlugin",
    "GIF": "GifImagePlugin",
    "BMP": "BmpImagePlugin",
    "TIFF": "TiffImagePlugin",
    "PPM": "PpmImagePlugin",
}
"""The formats that are read, in Pillow's names, with its modules. MPO is a JPEG with further
images."""

MAX_PIXELS = 89_478_485
"""Images with more pixels are refused after their header is read, before decoding. This is the
limit above which Pillow warns (8K has 33 M pixels).
"""

BACKGROUND = "VISENV_IMAGE_BACKGROUND"
"""The environment variable with the color behind transparent images, six hexadecimal digits; by
default they are shown on white, ``ffffff``."""

MOST_BYTES = 2**30
"""Maximum number of bytes of an image file."""

_MOST_SCANS = 100
"""Maximum number of scans of a progressive JPEG, which usually has ten. Each scan of a few bytes
costs a pass over all pixels."""

_MOST_EXIF = 256
"""Most EXIF segments of a JPEG, which usually has one. Pillow copies all earlier ones for each."""

_SMALL = 2**20
"""Bytes of a file in which even the most segments are copied within a second."""

_COLOR = re.compile("[0-9a-fA-F]{6}")
_JPEG, _EXIF, _SCAN = b"\xff\xd8", b"Exif\0\0", b"\xff\xda"
_TILE_WIDTH, _TILE_LENGTH = 322, 323  # tags of TIFF


@contextmanager
def open_picture(source: Path | bytes, name: str) -> Iterator[PIL.Image.Image]:
    """Open an encoded image to read its size and to decode it; close it at the end of the block.

    Args:
        source: The path of a file, or its content.
        name: The image in error messages.

    Raises:
        ImageError: If the file is missing or is not a regular file, or the image is in none of
            `FORMATS`, is damaged, or has more than `MAX_PIXELS` pixels.
    """
    with _open_source(source, name) as file, _open_by_header(file, name) as opened:
        yield opened


def decode(opened: PIL.Image.Image, name: str) -> NDArray[np.uint8]:
    """Return the upright pixels of an opened image, RGB, uint8 ``[height, width, 3]``.

    `visenv.decoding.rgb` describes the conversion.

    Raises:
        ImageError: If it cannot be decoded within the limits, or its values have no defined color.
    """
    _check_scans(opened, name)
    background = background_color()
    try:
        return np.asarray(to_rgb(opened, background))
    except PixelError as error:
        raise ImageError(f"Cannot decode {name}: {error}.") from error
    except Exception as error:  # the decoders of damaged data raise many types
        raise ImageError(f"Cannot decode {name}: {_text(error)}.") from error


def background_color() -> tuple[int, int, int]:
    """Return the color behind transparent images.

    Raises:
        ConfigurationError: If the environment variable is not a color.
    """
    given = os.environ.get(BACKGROUND, "ffffff")
    if not _COLOR.fullmatch(given):
        raise ConfigurationError(f"{BACKGROUND} must be a color such as 808080, got {given!r}.")
    red, green, blue = bytes.fromhex(given)
    return red, green, blue


def _open_source(source: Path | bytes, name: str) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        return open_regular(source)
    except FileNotFoundError as error:
        raise ImageError(f"There is no image file {name}.") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains NUL
        raise ImageError(f"{name} is not an image that can be read: {_text(error)}.") from error


def _open_by_header(file: BinaryIO, name: str) -> PIL.Image.Image:
    import PIL.Image

    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > MOST_BYTES:
        raise ImageError(f"{name} has {size:,} bytes; at most {MOST_BYTES:,} are read.")
    if size > _SMALL:
        _check_exif(file, name)
    try:
        opened = PIL.Image.open(file, formats=_known_formats())
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning) as error:
        raise ImageError(
            f"{name} is too large to decode: at most {MAX_PIXELS:,} pixels are decoded. Resize it "
            "first."
        ) from error
    except PIL.UnidentifiedImageError as error:
        raise ImageError(
            f"{name} is not an image that can be read: expected one of the formats "
            f"{', '.join(FORMATS)}."
        ) from error
    except Exception as error:  # the parsers of damaged headers raise many types
        raise ImageError(f"{name} is not an image that can be read: {_text(error)}.") from error
    try:
        _check_size(opened, name)
    except BaseException:
        opened.close()
        raise
    return opened


@cache
def _known_formats() -> list[str]:
    """Load Pillow's modules of the formats; return the formats that this build of Pillow has."""
    import PIL.Image

    for module in FORMATS.values():
        importlib.import_module(f"PIL.{module}")
    return [name for name in FORMATS if name in PIL.Image.OPEN]


def _check_size(opened: PIL.Image.Image, name: str) -> None:
    width, height = opened.size
    if width * height > MAX_PIXELS:
        raise ImageError(
            f"{name} is {width}x{height} = {width * height:,} pixels; "
            f"at most {MAX_PIXELS:,} are decoded. Resize it first."
        )
    if opened.format == "TIFF":  # memory for a whole tile is allocated, however small the image is
        tags = getattr(opened, "tag_v2", {})
        tile = [tags.get(tag, 1) for tag in (_TILE_WIDTH, _TILE_LENGTH)]
        if not all(isinstance(side, int) for side in tile) or tile[0] * tile[1] > MAX_PIXELS:
            raise ImageError(
                f"{name} has tiles of {tile[0]}x{tile[1]} pixels; at most {MAX_PIXELS:,} are "
                "decoded."
            )


def _check_exif(file: BinaryIO, name: str) -> None:
    segments = file.read().count(_EXIF) if file.read(2) == _JPEG else 0
    file.seek(0)
    if segments > _MOST_EXIF:
        raise ImageError(
            f"{name} has {segments:,} segments of EXIF data; at most {_MOST_EXIF} are read."
        )


def _check_scans(opened: PIL.Image.Image, name: str) -> None:
    file = getattr(opened, "fp", None)
    if file is None or not opened.info.get("progressive"):
        return
    position = file.tell()
    file.seek(0)
    scans = file.read().count(_SCAN)
    file.seek(position)
    if scans > _MOST_SCANS:
        raise ImageError(
            f"{name} is a progressive JPEG of {scans:,} scans; at most {_MOST_SCANS} are decoded."
        )


def _text(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
