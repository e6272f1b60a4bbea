"""What is asked about images before anything is wrong with them: documents, scenes, or both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.data.source import ProceduralSource
from visenv.errors import UnknownNameError
from visenv.types import Image, QuestionTruth, Sample
from visenv.worlds.draws import pick
from visenv.worlds.reports import ReportsLibrary
from visenv.worlds.reports.library import DOCUMENTS
from visenv.worlds.reports.questions import COMPARISON, KINDS, ask
from visenv.worlds.scenes import ScenesWorld

from .flags import FlagsWorld
from .plans import PLANS, Plan
from .sources import DistortedWorld

LONG_SIDE = 1120
"""Of a page, pixels: its text can be read when it is shown at the paper's 401,408."""


class PageQuestions:
    """Questions about one page of a made-up report, with that page as their image.

    A `ProceduralSource`: all kinds of question of `visenv.worlds.reports` that one page answers.

    Args:
        documents: Seeds of the documents: the first, and the one after the last.
        long_side: Of the image, pixels.
    """

    ground_truth = QuestionTruth

    def __init__(self, documents: tuple[int, int] = DOCUMENTS, long_side: int = LONG_SIDE) -> None:
        self.library = ReportsLibrary()
        self.documents = documents
        self.long_side = long_side

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        kinds = [kind for kind in KINDS if kind != COMPARISON]
        while True:
            seed = int(rng.integers(*self.documents))
            question = ask(rng, self.library.text(seed), pick(rng, kinds))
            if question is not None:  # a short report may have no chart
                break
        name = self.library.name(seed)
        (page,) = question.pages
        image: Image = self.library.document(name).page_image(page, self.long_side)
        options = sorted([question.answer, *question.wrong[:3]])
        return Sample(
            id=f"{name}/{page}/{int(rng.integers(2**63)):016x}",
            question=question.text,
            images=(image,),
            answers=(question.answer,),
            kind=question.kind,
            ground_truth=QuestionTruth(options=tuple(options)),
        )


class Mixture:
    """A `ProceduralSource` of questions about images that draws from each of several as often.

    Args:
        sources: The sources.
    """

    ground_truth = QuestionTruth

    def __init__(self, sources: Sequence[ProceduralSource]) -> None:
        self.sources = tuple(sources)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        return pick(rng, self.sources).sample(rng)


TINY: Plan = dict.fromkeys([("rotation180",), ("dark",), ("none",)], 1)
"""Three problems that a very small model can tell apart."""


def procedural(world: str = "default", plan: Plan | None = None) -> DistortedWorld:
    """Distorted samples that need nothing downloaded.

    Args:
        world: ``"default"``: pages of reports, and scenes whose signs can be read at the size at
            which they are shown; crops are of larger scenes, whose signs cannot. ``"tiny"``: flags
            that are upside down, in the dark, or neither.
        plan: How often each problem occurs; as in the paper's training set by default, or, of
            flags, each as often.

    Raises:
        UnknownNameError: If there is no such world.
    """
    if world == "tiny":
        return DistortedWorld(FlagsWorld(), plan=TINY if plan is None else plan)
    if world != "default":
        raise UnknownNameError("world of distorted images", world, ["default", "tiny"])
    readable = Mixture([PageQuestions(), ScenesWorld("small")])
    return DistortedWorld(readable, ScenesWorld(), PLANS["train"] if plan is None else plan)
