"""Draws pictures of 96 px for a model of a million parameters, in few, distinct colors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from visenv.types import Pixels

SIDE = 96
"""Side of a picture, pixels."""

COLORS = {
    "red": (246, 26, 26),
    "green": (26, 246, 26),
    "blue": (26, 26, 246),
    "yellow": (246, 246, 26),
    "cyan": (26, 246, 246),
    "magenta": (246, 26, 246),
}

_GRAIN = 6


def gray_ground(shade: int) -> NDArray[np.int16]:
    """Return a plain background, int16 ``[96, 96, 3]``; `shade` is 0 to 255."""
    return np.full((SIDE, SIDE, 3), shade, np.int16)


def with_grain(rng: np.random.Generator, drawn: NDArray[np.int16]) -> Pixels:
    """Return the picture with noise, up to 6 for each value, so that no two pictures are equal."""
    noisy: NDArray[np.int16] = drawn + rng.integers(-_GRAIN, _GRAIN + 1, drawn.shape, np.int16)
    return np.clip(noisy, 0, 255).astype(np.uint8)
