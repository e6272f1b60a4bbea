"""Creates flawed responses to questions whose right response is known (section 3.2).

A row ``{"id", "question", "images", "response"}`` becomes preference pairs ``{"id": "<id>/<k>",
"source": "<id>", "question", "images", "chosen", "rejected", "flaw"}``; other fields are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row
from visenv.curation.step import seed_of
from visenv.curation.writer import UnusableReplyError, Writer, WritingStep, read_texts
from visenv.errors import ConfigurationError, UnknownNameError

from .judging import correctness_cue, words
from .prompts import FLAWS, flawed_responses
from .rows import QuestionRow, question_of, without


@dataclass(eq=False)
class Negatives(WritingStep):
    """Requests flawed responses from a writer, each with an error of a given kind.

    The writer is asked again if a flawed response is equal to the right one or to another one, or
    if it mentions its correctness.

    Raises:
        UnknownNameError: If a flaw is unknown.
        ConfigurationError: If there are fewer flaws than responses.
    """

    name: ClassVar[str] = "negatives"

    writer: Writer
    count: int = 1
    """Number of flawed responses to each question."""
    flaws: tuple[str, ...] = ()
    """Kinds of errors to choose from; by default all."""
    seed: int = 0
    """Seed of the random choices."""

    def __post_init__(self) -> None:
        for flaw in self.flaws:
            if flaw not in FLAWS:
                raise UnknownNameError("flaw", flaw, FLAWS)
        self._flaws = sorted(set(self.flaws or FLAWS))
        if not 1 <= self.count <= len(self._flaws):
            raise ConfigurationError(
                f"Expected a count from 1 to {len(self._flaws)}, one kind of flaw for each "
                f"response, got {self.count}."
            )

    @override
    def settings(self) -> dict[str, Any]:
        return {
            **self.writer.settings(),
            "count": self.count,
            "flaws": self._flaws,
            "seed": self.seed,
        }

    @override
    async def compose(self, row: Row) -> RowOutcome:
        question = question_of(row)
        seed = seed_of("negatives", self.seed, row["id"])
        order = np.random.default_rng(seed).permutation(len(self._flaws))[: self.count]
        flaws = [self._flaws[place] for place in order]

        def read(reply: Row) -> list[str]:
            responses = read_texts(reply, "responses", self.count)
            _check(responses, question)
            return responses

        prompt = flawed_responses(question.text, question.response, flaws)
        responses = await self.writer.write(prompt, question.images, read, seed)
        return kept(
            *(
                {
                    **without(row, "response"),
                    "id": f"{row['id']}/{place}",
                    "question": question.text,
                    "source": row["id"],
                    "chosen": question.response,
                    "rejected": response,
                    "flaw": flaw,
                }
                for place, (response, flaw) in enumerate(zip(responses, flaws, strict=True))
            )
        )


def _check(responses: Sequence[str], question: QuestionRow) -> None:
    said = [words(text) for text in (question.response, *responses)]
    if len(set(said)) < len(said):
        raise UnusableReplyError(
            "same response", "Each response must say something else than the right one and others."
        )
    for response in responses:
        cue = correctness_cue(response, question.text, question.response)
        if cue is not None:
            complaint = f"No response may talk of correctness, as {cue!r} does."
            raise UnusableReplyError("correctness cue", complaint)
