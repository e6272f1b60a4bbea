"""The distortions: what each does to an image, as a function of its parameters alone.

A distortion holds all its parameters, so that `apply` makes the same pixels of the same image
again. The paper names the kinds; ranges are ours, as its builder was not published.

================  ========================================  ======================================
name              parameters                                what undoes it
================  ========================================  ======================================
``rotation90``    ``clockwise``: true, as the paper has it  a turn the other way, exactly
``rotation180``   none                                      another one, exactly
``dark``          ``gain`` 0.15 to 0.40                     ``1 / gain``, to ``0.5 / gain`` levels
``overexposure``  ``gain`` 1.8 to 3.0, clipped at 255       ``1 / gain`` where nothing was clipped
``blur``          ``kernel`` 9, 11, … 25 px, ``sigma`` px   nothing; sharpening helps
``noise``         ``sigma`` 25 to 60 levels, ``seed``       nothing; smoothing helps
================  ========================================  ======================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from visenv.errors import DataError
from visenv.types import Pixels

from ..ground_truth import Distortion

ValueT = TypeVar("ValueT")

Parameters = dict[str, Any]


class Kind(NamedTuple):
    """One kind of distortion.

    Attributes:
        draw: Parameters at random.
        apply: The distorted image, from the image (uint8 ``[height, width, 3]``) and parameters.
    """

    draw: Callable[[np.random.Generator], Parameters]
    apply: Callable[[Pixels, Distortion], Pixels]


def draw(name: str, rng: np.random.Generator) -> Distortion:
    """A distortion of that kind with parameters at random."""
    return Distortion(name=name, **KINDS[name].draw(rng))


def apply(pixels: Pixels, distortion: Distortion) -> Pixels:
    """The distorted image.

    Args:
        pixels: uint8 ``[height, width, 3]``; not changed.
        distortion: As `draw` makes it.

    Raises:
        DataError: If there is no such distortion, or a parameter is missing.
    """
    try:
        distorted = KINDS[distortion.name].apply(pixels, distortion)
    except KeyError as error:
        raise DataError(f"No {error} in the distortion {distortion.as_row()}.") from error
    return np.ascontiguousarray(distorted)


def _nothing(rng: np.random.Generator) -> Parameters:
    return {}


def _gain(low: float, high: float) -> Callable[[np.random.Generator], Parameters]:
    return lambda rng: {"gain": round(float(rng.uniform(low, high)), 4)}


def _kernel(rng: np.random.Generator) -> Parameters:
    """An odd side, and the standard deviation that OpenCV takes for it."""
    side = 2 * int(rng.integers(4, 13)) + 1
    return {"kernel": side, "sigma": round(0.3 * ((side - 1) / 2 - 1) + 0.8, 4)}


def _grain(rng: np.random.Generator) -> Parameters:
    return {"sigma": round(float(rng.uniform(25, 60)), 4), "seed": int(rng.integers(2**31))}


def _clockwise(rng: np.random.Generator) -> Parameters:
    return {"clockwise": True}


def _quarter_turn(pixels: Pixels, distortion: Distortion) -> Pixels:
    clockwise = _known("clockwise", distortion.clockwise)
    return np.rot90(pixels, -1 if clockwise else 1)


def _half_turn(pixels: Pixels, distortion: Distortion) -> Pixels:
    return np.rot90(pixels, 2)


def _scale(pixels: Pixels, distortion: Distortion) -> Pixels:
    gain = _known("gain", distortion.gain)
    levels = np.clip(np.rint(np.arange(256) * gain), 0, 255).astype(np.uint8)
    return np.asarray(levels[pixels], np.uint8)


def _blur(pixels: Pixels, distortion: Distortion) -> Pixels:
    import cv2

    side, sigma = _known("kernel", distortion.kernel), _known("sigma", distortion.sigma)
    return np.asarray(cv2.GaussianBlur(pixels, (side, side), sigma), np.uint8)


def _add_noise(pixels: Pixels, distortion: Distortion) -> Pixels:
    rng = np.random.default_rng(_known("seed", distortion.seed))
    noisy = rng.standard_normal(pixels.shape, np.float32)
    noisy *= _known("sigma", distortion.sigma)
    noisy += pixels
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _known(name: str, value: ValueT | None) -> ValueT:
    if value is None:
        raise KeyError(name)
    return value


KINDS: Mapping[str, Kind] = {
    "rotation90": Kind(_clockwise, _quarter_turn),
    "rotation180": Kind(_nothing, _half_turn),
    "dark": Kind(_gain(0.15, 0.40), _scale),
    "overexposure": Kind(_gain(1.8, 3.0), _scale),
    "blur": Kind(_kernel, _blur),
    "noise": Kind(_grain, _add_noise),
}
"""By name."""

LABELS = (*KINDS, "crop", "none")
"""What a problem can be called: a distortion, a detail too small to be read as shown, or none."""
