"""ReportQuestions: plain questions about made-up documents, with their answers and evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.types import Sample
from visenv.worlds.reports.library import DOCUMENTS
from visenv.worlds.reports.question import ReportQuestion

from ..ground_truth import DocumentTruth
from .reports import ReportsWorld


class ReportQuestions:
    """Makes questions about the documents of `ReportsWorld`, without responses to judge.

    A `ProceduralSource` with a `library`. `Sample.answers` is the one right value; the
    `DocumentTruth` holds ``document``, ``evidence_pages``, ``gold_query`` and ``options``: the
    right value and the wrong ones of `ReportsWorld`, in the order of the alphabet.

    Args:
        preset: A preset of `ReportsWorld`.
        documents: Seeds of the documents: the first, and the one after the last.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If the range of documents cannot be.
    """

    ground_truth = DocumentTruth

    def __init__(self, preset: str = "default", *, documents: Sequence[int] = DOCUMENTS) -> None:
        self._world = ReportsWorld(preset, documents=documents)
        self.library = self._world.library

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        document, question = self._world.draw_question(rng)
        return Sample(
            f"{document}/{question.kind}/{int(rng.integers(2**63)):016x}",
            question.text,
            (),
            (question.answer,),
            question.kind,
            _truth(document, question),
        )


def _truth(document: str, question: ReportQuestion) -> DocumentTruth:
    return DocumentTruth(
        document=document,
        evidence_pages=tuple(question.pages),
        gold_query=question.gold_query,
        options=tuple(sorted((question.answer, *question.wrong))),
    )
