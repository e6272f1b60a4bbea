"""Degrades a native picture by a known kernel, noise and JPEG."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visenv.types import Pixels


class Degradation(NamedTuple):
    """Describes how a picture loses its details after it was averaged down to its native size.

    Attributes:
        blur: Standard deviation of the Gaussian kernel, native px.
        noise: Standard deviation of the Gaussian noise, in gray levels of 255.
        jpeg: Quality of JPEG, 1 to 100.
    """

    blur: float
    noise: float
    jpeg: int


def degrade(rng: np.random.Generator, native: Pixels, degradation: Degradation) -> Pixels:
    """Return the blurred, noisy picture after JPEG, uint8 of the shape of `native`.

    Args:
        rng: Draws the noise.
        native: uint8 ``[height, width, 3]``, RGB.
        degradation: The strength of each step.
    """
    from visenv.opencv import cv2

    sigma = degradation.blur
    blurred = cv2.GaussianBlur(native.astype(np.float32), (0, 0), sigma) if sigma else native
    noise = rng.standard_normal(native.shape, np.float32) * np.float32(degradation.noise)
    noisy = np.clip(np.round(blurred + noise), 0, 255).astype(np.uint8)
    quality = [cv2.IMWRITE_JPEG_QUALITY, degradation.jpeg]
    _, encoded = cv2.imencode(".jpg", cv2.cvtColor(noisy, cv2.COLOR_RGB2BGR), quality)
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    assert decoded is not None, "OpenCV reads what it wrote"
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), np.uint8)
