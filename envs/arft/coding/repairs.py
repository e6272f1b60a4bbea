"""Programs that repair what is wrong with an image: what the oracle writes."""

from __future__ import annotations

from collections.abc import Sequence

from visenv.sandbox import INPUT_IMAGE, OUTPUT_IMAGE
from visenv.types import Sample

from .ground_truth import CodingTruth, Distortion

_USUAL_GAIN, _USUAL_SIGMA = 2.0, 2.0
"""Of overexposed and of blurred images that tell none."""


def repair(sample: Sample) -> str:
    """A program that undoes the sample's distortions, the last one first, or cuts its box out."""
    truth = sample.truth_as(CodingTruth)
    undone = [f"image = {_undo(each, 'image')}" for each in reversed(truth.distortions)]
    work = "\n".join(undone if truth.box is None else _cut(truth.box))
    return (
        f'import cv2\n\nimage = cv2.imread("{INPUT_IMAGE}")\n{work}\n'
        f'cv2.imwrite("{OUTPUT_IMAGE}", image)'
    )


def brief_repair(distortions: Sequence[Distortion]) -> str:
    """The same in one line, for a model that has to learn each of its tokens.

    Brightness is changed by whole factors.
    """
    image = f'cv2.imread("{INPUT_IMAGE}")'
    for distortion in reversed(distortions):
        image = _undo(distortion, image, digits=None).replace(", ", ",")
    return f'cv2.imwrite("{OUTPUT_IMAGE}",{image})'


def _undo(distortion: Distortion, image: str, digits: int | None = 3) -> str:
    """An expression for what `image` was before the distortion."""
    match distortion.name:
        case "rotation90":
            turn = "COUNTERCLOCKWISE" if distortion.clockwise else "CLOCKWISE"
            return f"cv2.rotate({image}, cv2.ROTATE_90_{turn})"
        case "rotation180":
            return f"cv2.rotate({image}, cv2.ROTATE_180)"
        case "dark" | "overexposure":
            factor = round(1 / (distortion.gain or _USUAL_GAIN), digits)
            return f"cv2.convertScaleAbs({image}, None, {factor})"
        case "blur":
            blurred = f"cv2.GaussianBlur({image}, (0, 0), {distortion.sigma or _USUAL_SIGMA})"
            return f"cv2.addWeighted({image}, 2.0, {blurred}, -1.0, 0)"
        case _:  # noise
            return f"cv2.GaussianBlur({image}, (5, 5), 0)"


def _cut(box: Sequence[int]) -> list[str]:
    left, top, right, bottom = box
    return [
        "height, width = image.shape[:2]",
        f"left, right = {left} * width // 1000, {right} * width // 1000",
        f"top, bottom = {top} * height // 1000, {bottom} * height // 1000",
        "image = image[top:bottom, left:right]",
    ]
