"""Defines the distortions, functions of the image and of their parameters, and their strengths.

Procedural pictures draw from `CALIBRATED`. Its ranges were found with readers from outside, by
``python benchmarks/arft_readers.py``: on the picture as shown, tesseract (with any processing
other than the repair) and a line reader that was trained on undistorted lines read at most 10 % of
the answers, and tesseract reads at least 85 % after the reference repair. For darkness and
overexposure this holds for the second reader alone, because tesseract binarizes its input, which is
their repair; ink and paper differ by at most 3 levels as shown. docs/arft.md has the results.

Images of data sets draw from `MILD`, because their legibility after a repair is unknown.

A `Distortion` contains all parameters, so that `apply` creates the same pixels from the same image.
The paper names the kinds; their parameters and ranges are ours, because its builder was not
published.

================  =========================================  =====================================
name              parameters                                 repair
================  =========================================  =====================================
``rotation90``    ``clockwise``: true, as in the paper       a rotation the other way, exactly
``rotation180``   none                                       the same rotation, exactly
``dark``          ``gain`` below 1                           ``1 / gain``, to ``0.5 / gain`` levels
``overexposure``  ``veil``: contrast to white is divided     a multiplication by ``veil``, to
                                                             ``0.5 * veil`` levels
..                ``gain`` above 1, clipped at 255           ``1 / gain`` where nothing was clipped
``blur``          ``kernel`` px, odd, and ``sigma`` px       a Wiener filter, up to rounding
``noise``         ``density`` of black and white pixels,     the mean of the other pixels around
                  ``seed``
..                ``sigma`` levels (Gaussian), ``seed``      nothing; smoothing helps
================  =========================================  =====================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from visenv.errors import DataError
from visenv.types import Pixels

from ..ground_truth import Distortion
from .canvas import TextBox

ValueT = TypeVar("ValueT")

Parameters = dict[str, Any]


class StrengthRange(NamedTuple):
    """Describes the range of the parameter that is the strength of a distortion.

    Attributes:
        parameter: A field of `Distortion`.
        mildest: The value of the parameter for the mildest distortion.
        strongest: The value of the parameter for the strongest distortion.
    """

    parameter: str
    mildest: float
    strongest: float

    def at(self, share: float) -> float:
        """Return the value at a share of the range, 0 to 1, on a logarithmic scale."""
        return round(float(self.mildest * (self.strongest / self.mildest) ** share), 4)


Strengths = Mapping[str, StrengthRange]
"""Ranges by the name of the distortion; rotations have none."""

MILD: Strengths = {
    "dark": StrengthRange("gain", 0.40, 0.14),
    "overexposure": StrengthRange("gain", 1.8, 2.9),
    "blur": StrengthRange("kernel", 9, 17),
    "noise": StrengthRange("sigma", 10, 37),
}
"""Strengths for images of data sets; their noise is Gaussian, which no repair removes."""

CALIBRATED: Mapping[frozenset[str], Strengths] = {
    frozenset({"dark"}): {"dark": StrengthRange("gain", 0.0098, 0.008)},
    frozenset({"overexposure"}): {"overexposure": StrengthRange("veil", 80, 95)},
    frozenset({"blur"}): {"blur": StrengthRange("kernel", 73, 75)},
    frozenset({"noise"}): {"noise": StrengthRange("density", 0.72, 0.82)},
    frozenset({"blur", "noise"}): {
        "blur": StrengthRange("kernel", 51, 55),
        "noise": StrengthRange("density", 0.4, 0.5),
    },
}
"""Strengths for procedural pictures, by the distortions other than rotations."""

WHOLE: Strengths = {
    "dark": StrengthRange("gain", 0.40, 0.008),
    "overexposure": StrengthRange("veil", 2, 95),
    "blur": StrengthRange("kernel", 9, 79),
    "noise": StrengthRange("density", 0.05, 0.82),
}
"""Strengths that are searched for combinations that were not calibrated."""


class DistortionKind(NamedTuple):
    """Describes one kind of distortion.

    Attributes:
        draw: Returns all parameters, given the one that is the strength; the others are random.
        apply: Returns the distorted image, given the image (uint8 ``[height, width, 3]``) and
            the parameters.
    """

    draw: Callable[[np.random.Generator, Parameters], Parameters]
    apply: Callable[[Pixels, Distortion], Pixels]


def draw(
    name: str, rng: np.random.Generator, strength: StrengthRange | None, share: float
) -> Distortion:
    """Return a distortion.

    Args:
        name: The kind of the distortion, a key of `KINDS`.
        rng: Draws the parameters other than the strength.
        strength: The range of the strength; None for a rotation.
        share: The point of the range, 0 to 1.
    """
    given = {} if strength is None else {strength.parameter: strength.at(share)}
    return Distortion(name=name, **KINDS[name].draw(rng, given))


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


def _as_given(rng: np.random.Generator, given: Parameters) -> Parameters:
    return given


def _kernel(rng: np.random.Generator, given: Parameters) -> Parameters:
    """Return an odd kernel size, and the standard deviation that OpenCV derives from it."""
    side = 2 * round((given["kernel"] - 1) / 2) + 1
    return {"kernel": side, "sigma": round(0.3 * ((side - 1) / 2 - 1) + 0.8, 4)}


def _seeded(rng: np.random.Generator, given: Parameters) -> Parameters:
    return {**given, "seed": int(rng.integers(2**31))}


def _clockwise(rng: np.random.Generator, given: Parameters) -> Parameters:
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


def _overexpose(pixels: Pixels, distortion: Distortion) -> Pixels:
    if distortion.veil is None:
        return _scale(pixels, distortion)
    levels = np.rint(255 - (255 - np.arange(256)) / distortion.veil).astype(np.uint8)
    return np.asarray(levels[pixels], np.uint8)


def _blur(pixels: Pixels, distortion: Distortion) -> Pixels:
    from visenv.opencv import cv2

    side, sigma = _known("kernel", distortion.kernel), _known("sigma", distortion.sigma)
    # On whole numbers, OpenCV would round the weights of the kernel to 1/256. With this border, the
    # image and its reflections are periodic in twice its size, which the repair uses.
    levels, border = pixels.astype(np.float32), cv2.BORDER_REFLECT
    blurred = cv2.GaussianBlur(levels, (side, side), sigma, borderType=border)
    return np.rint(blurred).astype(np.uint8)


def _add_noise(pixels: Pixels, distortion: Distortion) -> Pixels:
    rng = np.random.default_rng(_known("seed", distortion.seed))
    if distortion.density is not None:
        return _salted(pixels, rng.random(pixels.shape[:2], np.float32), distortion.density)
    noisy = rng.standard_normal(pixels.shape, np.float32)
    noisy *= _known("sigma", distortion.sigma)
    noisy += pixels
    np.rint(noisy, out=noisy)
    return np.clip(noisy, 0, 255, out=noisy).astype(np.uint8)


def _salted(pixels: Pixels, chance: NDArray[np.float32], density: float) -> Pixels:
    """Return the image with this share of its pixels black or white, in equal numbers."""
    salted = pixels.copy()
    salted[chance < density / 2] = 0
    salted[chance >= 1 - density / 2] = 255
    return salted


def _known(name: str, value: ValueT | None) -> ValueT:
    if value is None:
        raise KeyError(name)
    return value


KINDS: Mapping[str, DistortionKind] = {
    "rotation90": DistortionKind(_clockwise, _quarter_turn),
    "rotation180": DistortionKind(_as_given, _half_turn),
    "dark": DistortionKind(_as_given, _scale),
    "overexposure": DistortionKind(_as_given, _overexpose),
    "blur": DistortionKind(_kernel, _blur),
    "noise": DistortionKind(_seeded, _add_noise),
}
"""The kinds by name."""

TURNS = ("rotation90", "rotation180")
"""Kinds that move pixels without changing their values: they have no strength."""

LABELS = (*KINDS, "crop", "none")
"""The labels of problems: a distortion, a detail that is too small to be read, or none."""
