"""Flags: pictures of 96 px that a model of a million parameters can read.

A pole with a flag of two bands. Upside down, the upper band is the lower one; in the dark, the
colours are nearly gone. An answer that takes two words can be half right.
"""

from __future__ import annotations

import numpy as np

from visenv.types import Image, Pixels, QuestionTruth, Sample
from visenv.worlds.draws import pick, shuffled

from ...world.little_pictures import COLOURS, grey_ground, with_grain

_SKY, _POLE = 150, 60
_FLAG = 48
QUESTIONS = {
    "upper": "What colour is the upper band of the flag?",
    "lower": "What colour is the lower band of the flag?",
    "both": "What colours are the bands of the flag, upper first?",
}


class FlagsWorld:
    """An unbounded source of flags, asked about one of their bands, or both."""

    ground_truth = QuestionTruth

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        identity = f"flag-{int(rng.integers(2**63)):016x}"
        bands = shuffled(rng, list(COLOURS))[:2]
        asked = pick(rng, list(QUESTIONS))
        upper, lower = bands
        answer = {"upper": upper, "lower": lower, "both": f"{upper} {lower}"}[asked]
        return Sample(
            id=identity,
            question=QUESTIONS[asked],
            images=(Image.from_pixels(_drawn(rng, bands)),),
            answers=(answer,),
            kind="flag",
            ground_truth=QuestionTruth(options=tuple(COLOURS)),
        )


def _drawn(rng: np.random.Generator, bands: list[str]) -> Pixels:
    """The flag near the top of its pole, which stands at the left edge on the ground."""
    pixels = grey_ground(_SKY)
    left, top = 12 + int(rng.integers(13)), 2 + int(rng.integers(9))
    middle, right = top + _FLAG // 2, left + _FLAG + int(rng.integers(13))
    pixels[top:, left - 6 : left] = _POLE
    pixels[top:middle, left:right] = COLOURS[bands[0]]
    pixels[middle : top + _FLAG, left:right] = COLOURS[bands[1]]
    return with_grain(rng, pixels)
