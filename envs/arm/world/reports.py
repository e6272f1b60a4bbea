"""Creates questions about fictional documents: plain ones, and with responses to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.draws import checked_range
from visenv.worlds.reports import cards, questions
from visenv.worlds.reports.library import DOCUMENTS, HELD_OUT_DOCUMENTS, SEEDS, ReportsLibrary
from visenv.worlds.reports.questions import ReportQuestion

from ..ground_truth import DocumentTruth, JudgingTruth, judging_sample


class ReportPreset(NamedTuple):
    """Describes the questions about the documents of a genre.

    Attributes:
        kinds: Kinds of question.
        ask: Creates a question of a kind about a document; None if it is impossible.
        candidates: Possible numbers of responses to judge.
    """

    kinds: tuple[str, ...]
    ask: Callable[[np.random.Generator, Any, str], ReportQuestion | None]
    candidates: tuple[int, ...]


PRESETS = {
    "default": ReportPreset(questions.KINDS, questions.ask, (1, 2, 4)),
    "tiny": ReportPreset(cards.KINDS, cards.ask_card, (1, 2)),
}


class ReportsWorld:
    """Creates judging samples about documents of several pages from a seed.

    This is a `ProceduralSource` with a `library`. A sample has a document, a question whose
    evidence is on known pages, and 1, 2 or 4 responses: one is right (a single one with probability
    1/2), the others differ from it in one number, name, year or direction, mostly taken from the
    same document.

    Presets:
        ``"default"``: reports of fictional companies, 4 to 24 A4 pages of text, tables and charts,
        as PDFs with a text layer. Values of charts are only in the drawing. Questions are about a
        table cell, a bar, the peak or a change of a curve, a count, a name, a date, or two pages.
        ``"tiny"``: 5 to 9 square pages of one panel each, for a view of 96 px, in which an overview
        with three pages per row does not show the answer (`visenv.worlds.reports.cards`).

    Documents are drawn from a finite set of 10,000, so that caches of pages and indices are useful;
    each allows hundreds of questions. Held-out samples (`sample_held_out`) are about 10,000 other
    documents. With a range of `documents`, all samples are about these documents.

    The `JudgingTruth` contains ``document``, ``evidence_pages``, ``gold_query`` and ``answer``, the
    right value.

    Args:
        preset: A key of `PRESETS`.
        documents: The range of seeds of the documents of all samples, as (first, last + 1); None
            draws the first 10,000, and others for held-out samples.
        kinds: Kinds of question; by default all of the preset.
        candidates: Numbers of responses, equally likely; by default those of the preset.

    Raises:
        UnknownNameError: If there is no such preset or kind.
        ConfigurationError: If a range or a number of responses is invalid.
    """

    ground_truth = JudgingTruth

    def __init__(
        self,
        preset: str = "default",
        *,
        documents: Sequence[int] | None = None,
        kinds: Sequence[str] | None = None,
        candidates: Sequence[int] | None = None,
    ) -> None:
        self.library = ReportsLibrary(preset)
        self._preset = PRESETS[preset]
        self.documents = checked_range(
            "documents", DOCUMENTS if documents is None else documents, SEEDS
        )
        self.held_out_documents = self.documents if documents is not None else HELD_OUT_DOCUMENTS
        self.kinds = tuple(self._preset.kinds if kinds is None else kinds)
        self.candidates = tuple(self._preset.candidates if candidates is None else candidates)
        self._check()

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator."""
        return self._judge(rng, *self.draw_question(rng))

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample about a document that no sample of training is about."""
        return self._judge(rng, *self.draw_question(rng, held_out=True))

    def draw_question(
        self, rng: np.random.Generator, held_out: bool = False
    ) -> tuple[str, ReportQuestion]:
        """Return the name of a document, and a question about it."""
        documents = self.held_out_documents if held_out else self.documents
        while True:
            seed = int(rng.integers(*documents))
            kind = self.kinds[int(rng.integers(len(self.kinds)))]
            question = self._preset.ask(rng, self.library.text(seed), kind)
            if question is not None:  # a short report may have no chart
                return self.library.name(seed), question

    def _judge(self, rng: np.random.Generator, document: str, question: ReportQuestion) -> Sample:
        count = self.candidates[int(rng.integers(len(self.candidates)))]
        place = int(rng.integers(max(count, 2)))
        wrong = iter(question.wrong)
        values = [question.answer if k == place else next(wrong) for k in range(count)]
        return judging_sample(
            id=f"{document}/{question.kind}/{int(rng.integers(2**63)):016x}",
            instruction=question.text,
            truth=JudgingTruth(
                candidates=tuple([question.respond(rng, value) for value in values]),
                document=document,
                evidence_pages=tuple(question.pages),
                gold_query=question.gold_query,
                answer=question.answer,
            ),
            verdict=place == 0 if count == 1 else place + 1,
            kind=question.kind,
        )

    def _check(self) -> None:
        if not self.kinds or not self.candidates:
            raise ConfigurationError(
                "kinds and candidates must not be empty, got "
                f"kinds={self.kinds!r} and candidates={self.candidates!r}."
            )
        for kind in self.kinds:
            if kind not in self._preset.kinds:
                raise UnknownNameError("kind of question", kind, self._preset.kinds)
        for count in self.candidates:
            if count not in (1, 2, 3, 4):
                raise ConfigurationError(f"There can be 1 to 4 candidates, got {count!r}.")


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
