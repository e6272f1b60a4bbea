"""Writes the oracle's programs, which repair distorted images.

`repaired` runs the same lines to decide whether an image can be restored, so that the reference
program of each sample is known to succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from visenv.sandbox import INPUT_IMAGE, OUTPUT_IMAGE
from visenv.types import Pixels, Sample

from .ground_truth import CodingTruth, Distortion

_USUAL_GAIN, _USUAL_KERNEL, _USUAL_SIGMA, _USUAL_NOISE = 2.0, 15, 2.6, 60.0
"""Parameters of distortions whose parameters are unknown."""
_SIGNAL = 200.0
"""Standard deviation of the gray levels of an image, for the Wiener filter."""
_ROUNDING = 3.0
"""Weight of the error of rounding to whole levels, divided by the sigma of a blur in pixels.

The structures that a large blur removes are large, and have more contrast than small ones.
"""
_CLIPPED = 250
"""Level from which overexposed paper is treated as white."""
_NEAR = 1.5
"""Standard deviation in pixels of the means that remove noise."""
_INTERPOLATION = 2.0
"""Standard deviation of the error of these means in a blurred picture."""
_BRIEF = ("rotation90", "rotation180", "dark")


def repair(sample: Sample, *, brief: bool = False) -> str:
    """Return a program that undoes the sample's distortions, or crops its box.

    Args:
        sample: A sample whose ground truth contains the distortions.
        brief: Whether to write one line if possible, for a model that has to learn each token.
    """
    truth = sample.truth_as(CodingTruth)
    if brief and truth.box is None and all(each.name in _BRIEF for each in truth.distortions):
        return brief_repair(truth.distortions)
    work = _undo_all(truth.distortions) if truth.box is None else _cut(truth.box)
    return "\n".join(
        [
            "import cv2",
            "import numpy as np",
            "",
            f'image = cv2.imread("{INPUT_IMAGE}")',
            *work,
            f'cv2.imwrite("{OUTPUT_IMAGE}", image)',
        ]
    )


def repaired(pixels: Pixels, distortions: Sequence[Distortion]) -> Pixels:
    """Apply the lines of `repair` to an image, or to a part of one.

    Args:
        pixels: uint8 ``[height, width, 3]``; not changed.
        distortions: The distortions of the image.
    """
    import numpy as np

    from visenv.opencv import cv2

    names: dict[str, Any] = {"cv2": cv2, "np": np, "image": pixels}
    exec("\n".join(_undo_all(distortions)), names)  # noqa: S102 - written in this module
    return np.ascontiguousarray(names["image"])


def brief_repair(distortions: Sequence[Distortion]) -> str:
    """Return a program of one line that undoes rotations, and darkness by integer factors."""
    image = f'cv2.imread("{INPUT_IMAGE}")'
    for distortion in reversed(distortions):
        image = _turned_or_brightened(distortion, image, digits=None).replace(", ", ",")
    return f'cv2.imwrite("{OUTPUT_IMAGE}",{image})'


def _undo_all(distortions: Sequence[Distortion]) -> list[str]:
    """Return the lines that undo all distortions, the last one first."""
    lines: list[str] = []
    noise: float | None = None
    for place, each in reversed(list(enumerate(distortions))):
        match each.name:
            case "overexposure" if each.veil:
                lines.append(f"image = 255 - (255 - image.astype(np.float32)) * {each.veil}")
                lines.append("image = np.clip(image, 0, 255).astype(np.uint8)")
            case "overexposure":
                gain = each.gain or _USUAL_GAIN
                # Clipped pixels were paper, and stay white.
                lines.append(
                    f"image = np.where(image < {_CLIPPED}, image / {gain}, 255).astype(np.uint8)"
                )
            case "blur":
                lines += _unblur(each, noise)
                noise = None
            case "noise" if each.density:
                lines += _unsalt()
                noise = _INTERPOLATION
            case "noise" if any(earlier.name == "blur" for earlier in distortions[:place]):
                noise = each.sigma or _USUAL_NOISE  # the Wiener filter of the blur removes it
            case "noise":
                lines.append("image = cv2.GaussianBlur(image, (0, 0), 1.6)")
                lines.append("image = cv2.bilateralFilter(image, 9, 60, 4)")
            case _:
                lines.append(f"image = {_turned_or_brightened(each, 'image')}")
    return lines


def _turned_or_brightened(distortion: Distortion, image: str, digits: int | None = 3) -> str:
    """Return an expression that undoes a rotation or darkness of `image`."""
    if distortion.name == "rotation90":
        turn = "COUNTERCLOCKWISE" if distortion.clockwise else "CLOCKWISE"
        return f"cv2.rotate({image}, cv2.ROTATE_90_{turn})"
    if distortion.name == "rotation180":
        return f"cv2.rotate({image}, cv2.ROTATE_180)"
    factor = round(1 / (distortion.gain or 1 / _USUAL_GAIN), digits)
    return f"cv2.convertScaleAbs({image}, None, {factor})"


def _unblur(distortion: Distortion, noise: float | None = None) -> list[str]:
    """Return the lines of a Wiener filter, which inverts a blur except where noise dominates.

    A blurred image continues beyond its edges as its reflection. Its cosine transform is therefore
    that of the sharp image, multiplied by the spectrum of the kernel. OpenCV transforms even sizes.
    `noise` is a standard deviation in levels; by default, that of rounding.
    """
    kernel, sigma = distortion.kernel or _USUAL_KERNEL, distortion.sigma or _USUAL_SIGMA
    power = round(((noise or _ROUNDING / sigma) / _SIGNAL) ** 2, 8)
    return [
        "height, width = image.shape[:2]",
        "even = cv2.copyMakeBorder(image, 0, height % 2, 0, width % 2, cv2.BORDER_REFLECT)",
        f"kernel = cv2.getGaussianKernel({kernel}, {sigma})[:, 0]",
        "down, across = (np.abs(np.fft.fft(kernel, 2 * side))[:side] for side in even.shape[:2])",
        "blur = np.outer(down, across).astype(np.float32)",
        f"wiener = blur / (blur**2 + np.float32({power}))",
        "channels = cv2.split(even.astype(np.float32))",
        "image = cv2.merge([cv2.idct(cv2.dct(channel) * wiener) for channel in channels])",
        "image = np.clip(np.rint(image[:height, :width]), 0, 255).astype(np.uint8)",
    ]


def _unsalt() -> list[str]:
    """Return lines that replace each pixel by the mean of those around it that are no noise."""
    return [
        "known = ((image > 0) & (image < 255)).all(axis=2).astype(np.float32)[:, :, None]",
        f"total = cv2.GaussianBlur(image * known, (0, 0), {_NEAR})",
        f"weight = cv2.GaussianBlur(known, (0, 0), {_NEAR})[:, :, None]",
        "image = np.clip(np.rint(total / (weight + 1e-6)), 0, 255).astype(np.uint8)",
    ]


def _cut(box: Sequence[int]) -> list[str]:
    left, top, right, bottom = box
    return [
        "height, width = image.shape[:2]",
        f"left, right = {left} * width // 1000, {right} * width // 1000",
        f"top, bottom = {top} * height // 1000, {bottom} * height // 1000",
        "image = image[top:bottom, left:right]",
    ]
