"""Flags: pictures of 96 px that a model of a million parameters can read.

A pole with a flag of two bands. Upside down, the upper band is the lower one; in the dark, the
colors are nearly gone. An answer that takes two words can be half right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from visenv.types import Image, Pixels, QuestionTruth, Sample
from visenv.worlds.draws import pick, shuffled

from ...world.tiny_images import COLORS, gray_ground, with_grain
from .legible import Strengths
from .plans import Problems

_SKY, _POLE = 150, 60
_FLAG = 48
_NEAR = 60
"""Levels by which a band may differ from its color and be named."""
QUESTIONS = {
    "upper": "What colour is the upper band of the flag?",
    "lower": "What colour is the lower band of the flag?",
    "both": "What colours are the bands of the flag, upper first?",
}


class Flag(NamedTuple):
    """A flag that is asked about.

    Attributes:
        bands: The colors, the upper one first.
        asked: A key of `QUESTIONS`.
    """

    bands: tuple[str, ...]
    asked: str


class FlagPictures:
    """Flags, asked about one of their bands, or both; see `Pictures`.

    The reader names the two bands by their colors, which it knows in full light only.
    """

    crops = False

    def strengths(self, problems: Problems) -> Mapping[str, Strengths]:
        """Return those of dark flags of a gain of 0.15 or more, which a factor up to 7 repairs."""
        return {"dark": (0.0, 0.38)}

    def write(self, rng: np.random.Generator) -> Flag:
        """Draw the colors and the question."""
        return Flag(tuple(shuffled(rng, list(COLORS))[:2]), pick(rng, list(QUESTIONS)))

    def rewrite(self, rng: np.random.Generator, text: Flag) -> Flag:
        """Return the same question about other colors."""
        return text._replace(bands=tuple(shuffled(rng, list(COLORS))[:2]))

    def draw(self, rng: np.random.Generator, text: Flag, small: bool = False) -> Sample:
        """Return a sample with a picture of the flag."""
        return Sample(
            id=f"flag-{int(rng.integers(2**63)):016x}",
            question=QUESTIONS[text.asked],
            images=(Image.from_pixels(_drawn(rng, text.bands)),),
            answers=(_answer(text.bands, text.asked),),
            kind="flag",
            ground_truth=QuestionTruth(options=tuple(COLORS)),
        )

    def share_read(self, sample: Sample, pixels: Pixels, place: object, native: bool) -> float:
        """Return 1 if the bands, as they look, give the answer, otherwise 0."""
        asked = next(key for key, question in QUESTIONS.items() if question == sample.question)
        bands = _seen(pixels)
        return float(len(bands) == 2 and _answer(bands, asked) == sample.answers[0])


def _answer(bands: Sequence[str], asked: str) -> str:
    upper, lower = bands
    return {"upper": upper, "lower": lower, "both": f"{upper} {lower}"}[asked]


def _seen(pixels: Pixels) -> list[str]:
    """Return the colors that are seen, each within `_NEAR` levels of its own, from the top."""
    rows: dict[str, float] = {}
    for name, color in COLORS.items():
        near = np.abs(pixels.astype(np.int16) - np.array(color, np.int16)).max(axis=2) <= _NEAR
        if near.sum() > _FLAG:
            rows[name] = float(np.flatnonzero(near.any(axis=1)).mean())
    return sorted(rows, key=rows.__getitem__)


def _drawn(rng: np.random.Generator, bands: Sequence[str]) -> Pixels:
    """Draw the flag near the top of its pole, which stands on the ground at the left edge."""
    pixels = gray_ground(_SKY)
    left, top = 12 + int(rng.integers(13)), 2 + int(rng.integers(9))
    middle, right = top + _FLAG // 2, left + _FLAG + int(rng.integers(13))
    pixels[top:, left - 6 : left] = _POLE
    pixels[top:middle, left:right] = COLORS[bands[0]]
    pixels[middle : top + _FLAG, left:right] = COLORS[bands[1]]
    return with_grain(rng, pixels)
