"""Imports OpenCV, and says what to do if its files are missing or damaged.

All modules of visenv import OpenCV by ``from visenv.opencv import cv2`` inside the functions that
use it. The packages `opencv-python` and `opencv-python-headless` contain the same files. Removing
one of them removes files of the other, and the rest of the folder may still be importable.
"""

from __future__ import annotations

from visenv.errors import ConfigurationError
from visenv.packages import OPENCV_REMEDY

try:
    import cv2

    cv2.imdecode  # noqa: B018  a folder that lost its files is imported as an empty package
except (ImportError, AttributeError) as error:
    raise ConfigurationError(f"OpenCV cannot be imported ({error}). {OPENCV_REMEDY}") from error

__all__ = ["cv2"]
