"""Defines the distortions; each is a function of the image and of its parameters alone.

A `Distortion` contains all parameters, so that `apply` creates the same pixels from the same image.
The paper names the kinds; the ranges are ours, because its builder was not published. A strength
from 0 to 1 selects a point of each range on a logarithmic scale, from the mildest to the strongest.

================  ========================================  ======================================
name              parameters                                repair
================  ========================================  ======================================
``rotation90``    ``clockwise``: true, as in the paper      a rotation the other way, exactly
``rotation180``   none                                      the same rotation, exactly
``dark``          ``gain`` 0.40 to 0.03                     ``1 / gain``, to ``0.5 / gain`` levels
``overexposure``  ``gain`` 1.8 to 6.0, clipped at 255       ``1 / gain`` where nothing was clipped
``blur``          ``kernel`` 9, 11, … 57 px, ``sigma`` px   a Wiener filter, up to rounding
``noise``         ``sigma`` 10 to 260 levels, ``seed``      nothing; smoothing helps
================  ========================================  ======================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from visenv.errors import DataError
from visenv.types import Pixels

from ..ground_truth import Distortion
from .lettering import TextBox

ValueT = TypeVar("ValueT")

Parameters = dict[str, Any]


class DistortionKind(NamedTuple):
    """Describes one kind of distortion.

    Attributes:
        draw: Returns parameters for a strength; parameters that do not depend on it are random.
        apply: Returns the distorted image, given the image (uint8 ``[height, width, 3]``) and
            the parameters.
    """

    draw: Callable[[np.random.Generator, float], Parameters]
    apply: Callable[[Pixels, Distortion], Pixels]


def draw(name: str, rng: np.random.Generator, strength: float) -> Distortion:
    """Return a distortion of kind `name` and strength 0 to 1."""
    return Distortion(name=name, **KINDS[name].draw(rng, strength))


def apply(pixels: Pixels, distortion: Distortion) -> Pixels:
    """Return the distorted image.

    Args:
        pixels: uint8 ``[height, width, 3]``; not changed.
        distortion: A distortion with the parameters of its kind, as `draw` returns it.

    Raises:
        DataError: If there is no such distortion, or a parameter is missing.
    """
    try:
        distorted = KINDS[distortion.name].apply(pixels, distortion)
    except KeyError as error:
        raise DataError(f"No {error} in the distortion {distortion.as_row()}.") from error
    return np.ascontiguousarray(distorted)


def apply_all(pixels: Pixels, distortions: Iterable[Distortion]) -> Pixels:
    """Apply all distortions to the image in order; see `apply`."""
    for distortion in distortions:
        pixels = apply(pixels, distortion)
    return pixels


def moved(place: TextBox, size: tuple[int, int], distortions: Iterable[Distortion]) -> TextBox:
    """Return the position of a part of an image after the image's rotations.

    Args:
        place: The position before.
        size: ``(width, height)`` of the image before, in pixels.
        distortions: The distortions of the image.
    """
    left, top, right, bottom = place
    width, height = size
    for each in distortions:
        if each.name == "rotation180":
            left, top, right, bottom = width - right, height - bottom, width - left, height - top
        elif each.name == "rotation90" and each.clockwise:
            left, top, right, bottom = height - bottom, left, height - top, right
            width, height = height, width
        elif each.name == "rotation90":
            left, top, right, bottom = top, width - right, bottom, width - left
            width, height = height, width
    return TextBox(left, top, right, bottom)


def _nothing(rng: np.random.Generator, strength: float) -> Parameters:
    return {}


def _between(mildest: float, strongest: float, strength: float) -> float:
    return float(mildest * (strongest / mildest) ** strength)


def _gain(mildest: float, strongest: float) -> Callable[[np.random.Generator, float], Parameters]:
    return lambda rng, strength: {"gain": round(_between(mildest, strongest, strength), 4)}


def _kernel(rng: np.random.Generator, strength: float) -> Parameters:
    """Return an odd kernel size, and the standard deviation that OpenCV derives from it."""
    side = 2 * round(_between(4, 28, strength)) + 1
    return {"kernel": side, "sigma": round(0.3 * ((side - 1) / 2 - 1) + 0.8, 4)}


def _grain(rng: np.random.Generator, strength: float) -> Parameters:
    return {"sigma": round(_between(10, 260, strength), 4), "seed": int(rng.integers(2**31))}


def _clockwise(rng: np.random.Generator, strength: float) -> Parameters:
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
    from visenv.opencv import cv2

    side, sigma = _known("kernel", distortion.kernel), _known("sigma", distortion.sigma)
    return np.asarray(cv2.GaussianBlur(pixels, (side, side), sigma), np.uint8)


def _add_noise(pixels: Pixels, distortion: Distortion) -> Pixels:
    rng = np.random.default_rng(_known("seed", distortion.seed))
    noisy = rng.standard_normal(pixels.shape, np.float32)
    noisy *= _known("sigma", distortion.sigma)
    noisy += pixels
    np.rint(noisy, out=noisy)
    return np.clip(noisy, 0, 255, out=noisy).astype(np.uint8)


def _known(name: str, value: ValueT | None) -> ValueT:
    if value is None:
        raise KeyError(name)
    return value


KINDS: Mapping[str, DistortionKind] = {
    "rotation90": DistortionKind(_clockwise, _quarter_turn),
    "rotation180": DistortionKind(_nothing, _half_turn),
    "dark": DistortionKind(_gain(0.40, 0.03), _scale),
    "overexposure": DistortionKind(_gain(1.8, 6.0), _scale),
    "blur": DistortionKind(_kernel, _blur),
    "noise": DistortionKind(_grain, _add_noise),
}
"""The kinds by name."""

TURNS = ("rotation90", "rotation180")
"""Kinds that move pixels without changing their values: they have no strength."""

LABELS = (*KINDS, "crop", "none")
"""The labels of problems: a distortion, a detail that is too small to be read, or none."""
