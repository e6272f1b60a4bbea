"""Converts an opened picture to upright RGB pixels, as a viewer shows it.

The rules, which hold for data sets, documents, tool results, sandboxes and servers alike:

==========================  =====================================================================
picture                     pixels
==========================  =====================================================================
orientation (EXIF)          applied; sizes and boxes refer to the upright picture
transparent                 composed on the background color, white by default
palette, CMYK, YCbCr, LAB   converted by Pillow
16-bit gray                 divided by 257; inverted if 0 is white (TIFF)
float                       values from 0 to 1, multiplied by 255; others are refused
32-bit integer              refused, because its range is not known; PGM files have 16-bit values
several frames or pages     the first one
==========================  =====================================================================

The sandbox uses this module inside its guest, too. It therefore imports nothing of visenv, and
numpy and Pillow only when they are needed.
"""

from __future__ import annotations

from typing import Any

WHITE = (255, 255, 255)
"""The default color behind a transparent picture."""

_ORIENTATION = 0x0112  # tag of EXIF
_PHOTOMETRIC = 262  # tag of TIFF
_SIDEWAYS = (5, 6, 7, 8)
"""The orientations that swap width and height."""

_SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I;16N")
_TRANSPARENT = ("RGBA", "LA", "PA", "RGBa", "La")


class PixelError(ValueError):
    """Raised when the values of a picture have no defined color."""


def upright_size(opened: Any) -> tuple[int, int]:
    """Return ``(width, height)`` of the upright picture, without decoding it.

    Args:
        opened: A picture of Pillow that has been opened by its header.
    """
    width, height = opened.size
    return (height, width) if _orientation(opened) in _SIDEWAYS else (width, height)


def to_rgb(opened: Any, background: tuple[int, int, int] = WHITE) -> Any:
    """Return the pixels of a picture, RGB, uint8 ``[height, width, 3]``.

    Args:
        opened: A picture of Pillow.
        background: The color behind a transparent picture.

    Raises:
        PixelError: If its values have no defined color.
    """
    import numpy as np
    from PIL import ImageOps

    opened.load()
    has_orientation = _orientation(opened) not in (0, 1)
    upright = ImageOps.exif_transpose(opened) if has_orientation else opened
    mode = upright.mode
    if mode in _SIXTEEN_BITS or mode == "I":
        return _from_integers(upright, background)
    if mode == "F":
        return _from_floats(upright)
    if mode in _TRANSPARENT or "transparency" in upright.info:
        return _composed(upright, background)
    return np.asarray(upright if mode == "RGB" else upright.convert("RGB"))


def _orientation(opened: Any) -> int:
    """Return the orientation that must still be applied, 1 to 8; 0 if there is none."""
    if opened.format == "TIFF":  # Pillow applies it
        return 0
    if opened.format == "PNG" and "exif" not in opened.info:
        if not _has_late_exif(opened):
            return 0  # `getexif` would decode the picture
        opened.load()
    try:
        found = opened.getexif().get(_ORIENTATION, 0)
    except Exception:  # noqa: BLE001  damaged EXIF data: viewers show the picture as it is stored
        return 0
    return found if found in range(1, 9) else 0


def _has_late_exif(opened: Any) -> bool:
    """Return whether a PNG file that is not decoded yet has EXIF data after its pixels."""
    file = opened.fp
    if file is None:
        return False
    before = file.tell()
    try:
        place = 8  # after the signature
        while True:
            file.seek(place)
            head = file.read(8)
            if len(head) < 8:
                return False
            if head[4:] == b"eXIf":
                return True
            place += 12 + int.from_bytes(head[:4])
    finally:
        file.seek(before)


def _from_integers(picture: Any, background: tuple[int, int, int]) -> Any:
    """Return the RGB pixels of a picture with 16-bit gray levels; one level may be transparent."""
    import numpy as np

    values = np.asarray(picture)
    if picture.mode == "I":
        if picture.format not in ("PPM", "PNG"):
            raise PixelError(
                "its values are 32-bit integers, whose range is not known; save it with 8 or 16 "
                "bits"
            )
        values = np.clip(values, 0, 65535)
    levels = values.astype(np.uint32)
    if _is_white_zero(picture):
        levels = 65535 - levels
    gray = ((levels + 128) // 257).astype(np.uint8)  # [height, width]
    pixels = np.repeat(gray[:, :, None], 3, axis=2)
    clear = picture.info.get("transparency")
    if isinstance(clear, int):
        pixels[values == clear] = background
    return pixels


def _from_floats(picture: Any) -> Any:
    """Return RGB pixels of gray levels from 0 to 1."""
    import numpy as np

    values = np.asarray(picture)
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        low, high = float(np.min(values)), float(np.max(values))
        raise PixelError(
            f"its values are floats from {low:g} to {high:g}; only floats from 0 to 1 are read"
        )
    levels = 1 - values if _is_white_zero(picture) else values
    gray = np.rint(levels * 255).astype(np.uint8)  # [height, width]
    return np.repeat(gray[:, :, None], 3, axis=2)


def _is_white_zero(picture: Any) -> bool:
    """Return whether 0 is white; Pillow inverts such TIFF files only if they have 8 bits."""
    tags = getattr(picture, "tag_v2", None)
    return picture.format == "TIFF" and tags is not None and tags.get(_PHOTOMETRIC) == 0


def _composed(picture: Any, background: tuple[int, int, int]) -> Any:
    """Return RGB pixels of a transparent picture on a background."""
    import numpy as np
    from PIL import Image

    shown = picture.convert("RGBA")
    behind = Image.new("RGBA", shown.size, (*background, 255))
    return np.asarray(Image.alpha_composite(behind, shown).convert("RGB"))
