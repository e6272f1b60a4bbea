"""Creates distorted samples without a download: pages and signs, or flags."""

from __future__ import annotations

import numpy as np

from visenv.errors import UnknownNameError
from visenv.images import shrink, size_within
from visenv.types import Image, Pixels, QuestionTruth, Sample

from ...presets import TRAIN_PIXELS
from ..ground_truth import Legibility
from .entries import PictureEntries, rewrite_values, write_entries
from .flags import FlagPictures
from .kinds import TURNS
from .legibility import share_legible
from .lettering import TextBox
from .pictures import SIDE, draw_picture
from .plans import PLANS, Plan, Problems
from .sources import DistortedWorld
from .strengths import CALIBRATED, WHOLE, Strengths

VIEW = SIDE / size_within((SIDE, SIDE), TRAIN_PIXELS)[0]
"""Side of a picture relative to its shown version, with the paper's 401,408 pixels."""


class NoticePictures:
    """Draws pages and signs with four names and values, one of which is asked for; see `Pictures`.

    The legibility of the asked value is measured at its position
    (`visenv.envs.arft.coding.world.legibility`).
    """

    crops = True
    legibility: Legibility = "text"

    def strengths(self, problems: Problems) -> Strengths:
        """Return calibrated ranges; the whole ranges for combinations that have none."""
        return CALIBRATED.get(frozenset(problems) - set(TURNS), WHOLE)

    def write(self, rng: np.random.Generator) -> PictureEntries:
        """Draw the text and the question."""
        return write_entries(rng)

    def rewrite(self, rng: np.random.Generator, text: PictureEntries) -> PictureEntries:
        """Return the same question about other values."""
        return rewrite_values(rng, text)

    def draw(self, rng: np.random.Generator, text: PictureEntries, small: bool) -> Sample:
        """Draw the page or the signs."""
        pixels, place = draw_picture(rng, text, small)
        return Sample(
            id=f"{text.style}-{int(rng.integers(2**63)):016x}",
            question=text.question,
            images=(Image.from_pixels(pixels),),
            answers=(text.answer,),
            kind=text.style,
            ground_truth=QuestionTruth(options=tuple(sorted(text.values)), target_box=place),
        )

    def share_read(
        self, sample: Sample, pixels: Pixels, place: TextBox | None, native: bool
    ) -> float:
        """Return the share of the answer that is legible at the size at which it is shown."""
        assert place is not None
        capital = min(place.right - place.left, place.bottom - place.top)
        around = capital // 2
        line = pixels[
            place.top - around : place.bottom + around, place.left - around : place.right + around
        ]
        scale = 1.0 if native else 1 / VIEW
        height, width = line.shape[:2]
        shown = shrink(line, (round(scale * width), round(scale * height)))
        return share_legible(shown, sample.answers[0], capital, [scale])


class FlagsWorld(DistortedWorld):
    """Implements a `DistortedWorld` of flags. Held-out flags are at places of their own.

    Args:
        plan: The relative frequency of each problem.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(FlagPictures(), plan)
        self._held_out = FlagPictures(held_out=True)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample with a flag at a place where `sample` draws none."""
        return self.recent(rng, self._held_out)


TINY: Plan = dict.fromkeys([("rotation180",), ("dark",), ("none",)], 1)
"""Three problems that a very small model can distinguish."""


def procedural(world: str = "default", plan: Plan | None = None) -> DistortedWorld:
    """Return a source of distorted samples that needs no download.

    Args:
        world: ``"default"``: pages, and landscapes with signs, all of one size; details to
            crop are in small print. ``"tiny"``: flags that are upside down, in the dark, or
            neither.
        plan: How often each problem occurs; by default as in the paper's training set, or, for
            flags, each equally often.

    Raises:
        UnknownNameError: If there is no such world.
    """
    if world == "tiny":
        return FlagsWorld(TINY if plan is None else plan)
    if world != "default":
        raise UnknownNameError("world of distorted images", world, ["default", "tiny"])
    return DistortedWorld(NoticePictures(), PLANS["train"] if plan is None else plan)
