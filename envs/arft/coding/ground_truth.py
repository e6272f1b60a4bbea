"""Defines the ground truth of ArftCoding: the problems of an image and their parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types import QuestionTruth
from visenv.types.ground_truth import STRICT, Number, Texts

Region = Annotated[tuple[int, int, int, int], Strict(False)]
"""``(left, top, right, bottom)`` in thousandths of the image's sides."""

Legibility = Literal["", "text", "flag"]
"""The test of whether an image that a program wrote is readable
(`visenv.envs.arft.coding.world.questions`); ``""`` for samples of data sets."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Distortion:
    """Holds a distortion (`visenv.envs.arft.coding.world`); parameters that it lacks are None.

    Attributes:
        name: The name of the kind.
        clockwise: Whether a rotation by 90° was clockwise.
        gain: The factor by which gray levels were multiplied.
        kernel: The side of a blur's kernel, pixels.
        sigma: The standard deviation of a blur (pixels) or of noise (levels).
        seed: The seed of the noise.
        density: The share of the pixels that noise replaces by black or white.
        veil: The factor by which the distance of gray levels to white was divided.
    """

    name: str
    clockwise: bool | None = None
    gain: Number | None = None
    kernel: int | None = None
    sigma: Number | None = None
    seed: int | None = None
    density: Number | None = None
    veil: Number | None = None

    def as_row(self) -> dict[str, Any]:
        """Return ``{"name": …, <parameters>}``, the form in data files."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CodingTruth(QuestionTruth):
    """Holds the ground truth of a question about a distorted image.

    Attributes:
        problems: The labels of the problems, in the order in which they were applied.
        distortions: The distortions, in the same order.
        split: ``"simple"`` or ``"hard"``.
        steps: The kinds of turns that the task needs, in order.
        box: The region to crop, if the problem is a crop.
        legibility: How an image that a program wrote is tested.
        capital: Height of the capitals of the answer in the picture before its problems, pixels;
            0 if the answer is no text of a procedural picture.
    """

    problems: Texts
    distortions: tuple[Distortion, ...] = ()
    split: str
    steps: Texts
    box: Region | None = None
    legibility: Legibility = ""
    capital: int = 0
