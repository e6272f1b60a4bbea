"""Creates distorted samples without a download: eight layouts of text, or flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from visenv.errors import UnknownNameError
from visenv.images import fit, shrink, size_within
from visenv.types import Image, Pixels, QuestionTruth, Sample

from ...presets import TRAIN_PIXELS
from ..ground_truth import CodingTruth, Legibility
from .canvas import SIDE, TextBox
from .entries import PictureEntries, rewrite_entries, write_entries
from .flags import FlagPictures, shows_answer
from .kinds import CALIBRATED, TURNS, WHOLE, Strengths
from .legibility import share_legible
from .pictures import draw_picture
from .plans import CROP, PLANS, Plan, Problems
from .sources import DistortedWorld

VIEW = SIDE / size_within((SIDE, SIDE), TRAIN_PIXELS)[0]
"""Side of a picture relative to its shown version, with the paper's 401,408 pixels."""

READABLE = 0.9
"""Smallest share of the answer's letters that are legible in a readable image."""


@dataclass(frozen=True)
class TextPictures:
    """Draws pictures in eight layouts with four rows of text, one of which is asked for.

    See `Pictures`. The legibility of the answer is measured at its position
    (`visenv.envs.arft.coding.world.legibility`).

    Args:
        photographs: Whether the surfaces are photographs of installed packages.
        held_out: Whether to draw the texts that no picture of training has.
    """

    photographs: bool = False
    held_out: bool = False
    version: ClassVar[int] = 3
    crops: ClassVar[bool] = True
    legibility: ClassVar[Legibility] = "text"

    def strengths(self, problems: Problems) -> Strengths:
        """Return calibrated ranges; the whole ranges for combinations that have none."""
        return CALIBRATED.get(frozenset(problems) - set(TURNS), WHOLE)

    def write(self, rng: np.random.Generator) -> PictureEntries:
        """Draw the text and the question."""
        return write_entries(rng, self.held_out)

    def rewrite(self, rng: np.random.Generator, text: PictureEntries) -> PictureEntries:
        """Return the same question about a picture with other answers."""
        return rewrite_entries(rng, text, self.held_out)

    def draw(self, rng: np.random.Generator, text: PictureEntries, small: bool) -> Sample:
        """Draw the picture of the text."""
        pixels, place = draw_picture(rng, text, small, self.photographs)
        return Sample(
            id=f"{text.layout}-{int(rng.integers(2**63)):016x}",
            question=text.question,
            images=(Image.from_pixels(pixels),),
            answers=(text.answer,),
            kind=text.layout,
            ground_truth=QuestionTruth(options=tuple(sorted(text.options)), target_box=place),
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


TINY: Plan = dict.fromkeys([("rotation180",), ("dark",), ("none",)], 1)
"""Three problems that a very small model can distinguish."""

WORLDS = ("default", "photographs", "tiny")
"""The names of the procedural worlds."""


def procedural(world: str = "default", plan: Plan | None = None) -> DistortedWorld:
    """Return a source of distorted samples that needs no download.

    Args:
        world: ``"default"``: eight layouts of text on painted surfaces, all of one size; details
            to crop are in small print. ``"photographs"``: the same on photographs of installed
            packages. ``"tiny"``: flags that are upside down, in the dark, or neither.
        plan: How often each problem occurs; by default as in the paper's training set, or, for
            flags, each equally often.

    Raises:
        UnknownNameError: If there is no such world.
        ConfigurationError: If a package with photographs is not installed; raised by a sample.
    """
    if world not in WORLDS:
        raise UnknownNameError("world of distorted images", world, WORLDS)
    if world == "tiny":
        flags = FlagPictures(), FlagPictures(held_out=True)
        return DistortedWorld(*flags, TINY if plan is None else plan)
    photographs = world == "photographs"
    texts = TextPictures(photographs), TextPictures(photographs, held_out=True)
    return DistortedWorld(*texts, PLANS["train"] if plan is None else plan)


def is_readable(sample: Sample, written: Image | None, max_pixels: int) -> bool | None:
    """Return whether the answer can be read in an image; None for samples of data sets.

    Args:
        sample: The sample, with a `CodingTruth`.
        written: The image that the program wrote, None if it wrote none.
        max_pixels: Maximum number of pixels of a shown image; a larger one is shrunk.
    """
    truth = sample.truth_as(CodingTruth)
    if not truth.legibility:
        return None
    if written is None:
        return False
    shown = fit(written, max_pixels)
    if truth.legibility == "flag":
        return shows_answer(shown.pixels, sample)
    scales = shown.size[0] / written.size[0], min(shown.size) / SIDE
    is_part = truth.problems == CROP or written.size != (SIDE, SIDE)
    share = share_legible(shown.pixels, sample.answers[0], truth.capital, scales, is_part)
    return share >= READABLE
