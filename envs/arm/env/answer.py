"""Defines the base class of the environments for plain questions: look with tools, then answer."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ParsedTurn
from visenv.types import Event, GroundTruth, Message

from .. import answer_prompts
from ..answer_judge import ArmAnswerJudge, letters_of, rule_of, score_of
from .base import ArmEnv


class AnswerEnv(ArmEnv):
    """Implements the parts that the environments with plain questions share.

    The source may have a method ``score``, which scores an answer, and an attribute
    ``answer_note``, a note about its answers for the prompt and the judge.

    Args:
        judge: Scores answers that the rule of the data set does not accept; None: only the rule.
        **arguments: See `ArmEnv`.
    """

    last_turn_notice: ClassVar[str] = answer_prompts.ANSWER_NOW

    def __init__(self, *, judge: ArmAnswerJudge | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._judge = judge
        self.rule = rule_of(self.source)
        self._note = str(getattr(self.source, "answer_note", ""))

    @override
    def initial_messages(self) -> list[Message]:
        if not self.sample.answers:
            raise DataError(f"Sample {self.sample.id!r} has no published answer to score against.")
        pictures = self.pictures()
        self.store.images.update(pictures)
        return answer_prompts.opening(
            self.preset.prompt,
            self.sample,
            pictures,
            self.document(),
            self._note,
            self._tool_call,
            list(self.tools.values()),
            self.limits.turns,
        )

    @property
    @override
    def waits(self) -> bool:
        """Return whether `step` may wait for a tool or for the judge."""
        return super().waits or (self._judge is not None and not self.defers)

    @override
    def turn_events(self, turn: ParsedTurn) -> Iterable[Event] | Awaitable[Iterable[Event]]:
        """Return the judge's score of the answer, if there is a judge."""
        answer = self.log.answer
        if self._judge is None or answer is None:
            return ()
        return self._judge.events(self.turn, answer, self.sample, self.rule, self._note)

    @override
    def task_score(self) -> float:
        """Return the score of the answer, 0 to 1."""
        return score_of(self.log, self.sample, self.rule)

    @override
    def oracle_conclusion(self) -> ParsedTurn:
        """Return the most common right answer."""
        truth = self.sample.truth_as(GroundTruth)
        answer = truth.right_response(self.sample.answers)
        return ParsedTurn(answer_prompts.looked(self.preset.prompt, answer), answer=answer)

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return a random letter or option if there is a choice, otherwise a number."""
        options = getattr(self.sample.ground_truth, "options", ())
        choices = list(letters_of(self.sample) or options)
        return str(rng.choice(choices)) if choices else super().random_answer(rng)
