"""Creates plain questions about fictional documents, with their answers and evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.types import Sample
from visenv.worlds.reports.questions import ReportQuestion

from ..ground_truth import DocumentTruth
from .reports import ReportsWorld


class ReportQuestions:
    """Creates questions about the documents of `ReportsWorld`, without responses to judge.

    This is a `ProceduralSource` with a `library`. `Sample.answers` is the one right value; the
    `DocumentTruth` contains ``document``, ``evidence_pages``, ``gold_query`` and ``options``: the
    right value and the wrong ones of `ReportsWorld`, in alphabetical order.

    Args:
        preset: A preset of `ReportsWorld`.
        documents: As for `ReportsWorld`.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If the range of documents is invalid.
    """

    ground_truth = DocumentTruth

    def __init__(self, preset: str = "default", *, documents: Sequence[int] | None = None) -> None:
        self._world = ReportsWorld(preset, documents=documents)
        self.library = self._world.library

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator."""
        return self._sample(rng, held_out=False)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample about a document that no sample of training is about."""
        return self._sample(rng, held_out=True)

    def _sample(self, rng: np.random.Generator, held_out: bool) -> Sample:
        document, question = self._world.draw_question(rng, held_out)
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
