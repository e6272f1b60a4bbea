"""Makes values valid for every reader of JSON and UTF-8, and handles missing images."""

from __future__ import annotations

import logging
import math
from typing import Any

from visenv.errors import ImageError
from visenv.types import Image

_logger = logging.getLogger(__name__)


def portable(value: Any) -> Any:
    """Return the value with None for NaN and infinity, and U+FFFD for halves of surrogate pairs."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return portable_text(value)
    if isinstance(value, dict):
        return {portable(str(key)): portable(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple([portable(each) for each in value])
    if isinstance(value, list):
        return [portable(each) for each in value]
    return value


def portable_text(text: str) -> str:
    """Return the text with U+FFFD for halves of surrogate pairs."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def saved_png(image: Image) -> bytes | None:
    """Return a saved image as a PNG file; None, with a warning, if it is missing or broken."""
    try:
        return image.png()
    except ImageError as error:
        _logger.warning("An image is omitted from the export: %s", error)
        return None
