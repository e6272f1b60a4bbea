"""Contains the ranges of the strengths of distortions: calibrated ones, and mild ones.

Procedural pictures draw from `CALIBRATED`. Its ranges were found with readers from outside, by
``python benchmarks/arft_readers.py``: on the picture as shown, tesseract (with any processing
other than the repair) and a line reader that was trained on undistorted lines read at most 10 % of
the answers, and tesseract reads at least 85 % after the reference repair. For darkness and
overexposure this holds for the second reader alone, because tesseract binarizes its input, which is
their repair; ink and paper differ by at most 3 levels as shown. docs/arft.md has the results.

Images of data sets draw from `MILD`, because their legibility after a repair is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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
