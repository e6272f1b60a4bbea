"""Distorted samples that need nothing downloaded: pages and signs, or flags."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from visenv.errors import UnknownNameError
from visenv.images import shrink, size_within
from visenv.types import Image, Pixels, QuestionTruth, Sample

from ...presets import TRAIN_PIXELS
from .entries import PictureEntries, rewrite_values, write_entries
from .flags import FlagPictures
from .kinds import TURNS
from .legible import Strengths
from .lettering import TextBox
from .pictures import SIDE, draw_picture
from .plans import PLANS, Plan, Problems
from .reader import share_read
from .sources import DistortedWorld

VIEW = SIDE / size_within((SIDE, SIDE), TRAIN_PIXELS)[0]
"""Pixels of a picture to a pixel of what is shown of it, at the paper's 401,408."""

_STRENGTHS: Mapping[frozenset[str], Mapping[str, Strengths]] = {
    frozenset({"dark"}): {"dark": (0.35, 0.9)},
    frozenset({"overexposure"}): {"overexposure": (0.4, 0.65)},
    frozenset({"blur"}): {"blur": (0.65, 0.95)},
    frozenset({"noise"}): {"noise": (0.89, 0.98)},
    frozenset({"blur", "noise"}): {"blur": (0.6, 0.95), "noise": (0.0, 0.25)},
}
"""Where strengths that pass are found soon, by the distortions that have one."""

_AROUND = 0.35
"""What the reader sees around a line, of its height."""


class NoticePictures:
    """Pages and signs with four names and their values, one of which is asked for; see `Pictures`.

    The reader is `visenv.envs.arft.coding.world.reader`; it is told where the value stands.
    """

    crops = True

    def strengths(self, problems: Problems) -> Mapping[str, Strengths]:
        """Return where strengths that pass are found soon; all of them for unusual problems."""
        return _STRENGTHS.get(frozenset(problems) - set(TURNS), {})

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
        """Return the share of the answer that the reader reads, as large as it is shown."""
        assert place is not None
        around = round(_AROUND * min(place.right - place.left, place.bottom - place.top))
        line = pixels[
            place.top - around : place.bottom + around, place.left - around : place.right + around
        ]
        if not native:
            height, width = line.shape[:2]
            line = shrink(line, (round(width / VIEW), round(height / VIEW)))
        return share_read(line, sample.answers[0])


TINY: Plan = dict.fromkeys([("rotation180",), ("dark",), ("none",)], 1)
"""Three problems that a very small model can tell apart."""


def procedural(world: str = "default", plan: Plan | None = None) -> DistortedWorld:
    """Return distorted samples that need nothing downloaded.

    Args:
        world: ``"default"``: pages, and landscapes with signs, all of one size; details to be
            cropped are in small print. ``"tiny"``: flags that are upside down, in the dark, or
            neither.
        plan: How often each problem occurs; as in the paper's training set by default, or, of
            flags, each as often.

    Raises:
        UnknownNameError: If there is no such world.
    """
    if world == "tiny":
        return DistortedWorld(FlagPictures(), TINY if plan is None else plan)
    if world != "default":
        raise UnknownNameError("world of distorted images", world, ["default", "tiny"])
    return DistortedWorld(NoticePictures(), PLANS["train"] if plan is None else plan)
