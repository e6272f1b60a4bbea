"""The ground truth of ArftCoding: what is wrong with an image, and how it came about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types import QuestionTruth
from visenv.types.ground_truth import STRICT, Number, Texts

Region = Annotated[tuple[int, int, int, int], Strict(False)]
"""``(left, top, right, bottom)`` in thousandths of the image's sides."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Distortion:
    """A distortion with its parameters, None where it has none (`visenv.envs.arft.coding.world`).

    Attributes:
        name: The name of the kind.
        clockwise: Whether a quarter turn was clockwise.
        gain: The factor by which levels were multiplied.
        kernel: The side of a blur's kernel, pixels.
        sigma: The standard deviation of a blur (pixels) or of noise (levels).
        seed: The seed of the noise.
    """

    name: str
    clockwise: bool | None = None
    gain: Number | None = None
    kernel: int | None = None
    sigma: Number | None = None
    seed: int | None = None

    def as_row(self) -> dict[str, Any]:
        """Return ``{"name": …, <parameters>}``, as data files hold it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CodingTruth(QuestionTruth):
    """Ground truth of a question about an image with something wrong.

    Attributes:
        problems: The labels of what is wrong, in the order in which it came about.
        distortions: The distortions, in the same order.
        split: ``"simple"`` or ``"hard"``.
        steps: The kinds of turns that the task takes, in order.
        box: Where to look, of a crop.
    """

    problems: Texts
    distortions: tuple[Distortion, ...] = ()
    split: str
    steps: Texts
    box: Region | None = None
