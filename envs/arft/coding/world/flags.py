"""Draws flags: pictures of 96 px for a model of a million parameters.

A picture contains a pole with a flag of two bands. Rotated by 180°, the bands are swapped; in the
dark, the colors are hard to see. An answer may have two words, so it can be half right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from visenv.types import Image, Pixels, QuestionTruth, Sample
from visenv.worlds.draws import drawn_scene, pick, shuffled

from ...tiny_images import COLORS, gray_ground, with_grain
from ..ground_truth import Legibility
from .kinds import MILD, StrengthRange, Strengths
from .plans import Problems

_SKY, _POLE = 150, 60
_FLAG = 48
_NEAR = 60
"""Maximum distance in levels between a band and its color at which the reader names the color."""
QUESTIONS = {
    "upper": "What colour is the upper band of the flag?",
    "lower": "What colour is the lower band of the flag?",
    "both": "What colours are the bands of the flag, upper first?",
}


class Flag(NamedTuple):
    """Describes a flag and its question.

    Attributes:
        bands: The colors, the upper one first.
        asked: A key of `QUESTIONS`.
    """

    bands: tuple[str, ...]
    asked: str


@dataclass(frozen=True)
class FlagPictures:
    """Draws flags with questions about one band or both; see `Pictures`.

    The reader names the colors of the two bands, which it recognizes only in full light.

    Args:
        held_out: Whether to place the flags as in no picture of training.
    """

    held_out: bool = False
    version: ClassVar[int] = 2
    crops: ClassVar[bool] = False
    legibility: ClassVar[Legibility] = "flag"

    def strengths(self, problems: Problems) -> Strengths:
        """Return gains of 0.15 or more for dark flags, which a factor up to 7 repairs."""
        return {**MILD, "dark": StrengthRange("gain", 0.40, 0.15)}

    def write(self, rng: np.random.Generator) -> Flag:
        """Draw the colors and the question."""
        return Flag(tuple(shuffled(rng, list(COLORS))[:2]), pick(rng, list(QUESTIONS)))

    def rewrite(self, rng: np.random.Generator, text: Flag) -> Flag:
        """Return the same question about a flag with other colors."""
        return text._replace(bands=tuple(shuffled(rng, list(COLORS))[:2]))

    def draw(self, rng: np.random.Generator, text: Flag, small: bool = False) -> Sample:
        """Return a sample with a picture of the flag."""
        return Sample(
            id=f"flag-{int(rng.integers(2**63)):016x}",
            question=QUESTIONS[text.asked],
            images=(Image.from_pixels(self._drawn(rng, text.bands)),),
            answers=(_answer(text.bands, text.asked),),
            kind="flag",
            ground_truth=QuestionTruth(options=tuple(COLORS)),
        )

    def _drawn(self, rng: np.random.Generator, bands: Sequence[str]) -> Pixels:
        place = drawn_scene(lambda: _place(rng), self.held_out, key=tuple)
        return _painted(rng, bands, place)

    def share_read(self, sample: Sample, pixels: Pixels, place: object, native: bool) -> float:
        """Return 1 if the colors of the bands give the answer, otherwise 0."""
        return float(shows_answer(pixels, sample))


def shows_answer(pixels: Pixels, sample: Sample) -> bool:
    """Return whether the colors of the bands, in full light, give the answer of a flag's sample."""
    asked = next(key for key, question in QUESTIONS.items() if question == sample.question)
    bands = _seen(pixels)
    return len(bands) == 2 and _answer(bands, asked) == sample.answers[0]


def _answer(bands: Sequence[str], asked: str) -> str:
    upper, lower = bands
    return {"upper": upper, "lower": lower, "both": f"{upper} {lower}"}[asked]


def _seen(pixels: Pixels) -> list[str]:
    """Return the recognized colors from top to bottom; a band may differ by `_NEAR` levels."""
    rows: dict[str, float] = {}
    for name, color in COLORS.items():
        near = np.abs(pixels.astype(np.int16) - np.array(color, np.int16)).max(axis=2) <= _NEAR
        if near.sum() > _FLAG:
            rows[name] = float(np.flatnonzero(near.any(axis=1)).mean())
    return sorted(rows, key=rows.__getitem__)


def _place(rng: np.random.Generator) -> tuple[int, int, int]:
    """Return the left, upper and right edges of a flag, pixels."""
    left, top = 12 + int(rng.integers(13)), 2 + int(rng.integers(9))
    return left, top, left + _FLAG + int(rng.integers(13))


def _painted(rng: np.random.Generator, bands: Sequence[str], place: tuple[int, int, int]) -> Pixels:
    """Paint the flag near the top of its pole; the ground is at the left edge."""
    pixels = gray_ground(_SKY)
    left, top, right = place
    middle = top + _FLAG // 2
    pixels[top:, left - 6 : left] = _POLE
    pixels[top:middle, left:right] = COLORS[bands[0]]
    pixels[middle : top + _FLAG, left:right] = COLORS[bands[1]]
    return with_grain(rng, pixels)
