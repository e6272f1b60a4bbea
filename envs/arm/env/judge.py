"""Defines the base class of the judging environments: show responses, then read a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from visenv.grammar import ParsedTurn
from visenv.types import Message

from .. import prompts
from ..ground_truth import JudgingTruth, candidate_names
from ..rewards import right
from ..verdicts import verdicts, write_rating, write_verdict
from .base import ArmEnv


class JudgingEnv(ArmEnv):
    """Implements the parts that the judging environments share.

    The source must contain samples made by `judging_sample`. A subclass defines the shown images
    and the tool calls of the oracle.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (JudgingTruth,)

    @override
    def initial_messages(self) -> list[Message]:
        """Store responses and images under their names, and return the messages with the task."""
        sample = self.sample
        names = candidate_names(sample)
        self.store.texts.update(zip(names, self.truth.candidates, strict=True))
        pictures = self.pictures()
        self.store.images.update(pictures)
        tools = list(self.tools.values())
        style, grammar = self.preset.prompt, self._tool_call
        turns = self.limits.turns
        return prompts.opening(style, sample, pictures, self.document(), grammar, tools, turns)

    @override
    def task_score(self) -> float:
        """Return 1 for the right verdict."""
        return float(right(self.log, self.sample, self.compat))

    @override
    def oracle_conclusion(self) -> ParsedTurn:
        """Return the oracle's observations, and the right verdict."""
        return self.conclude(self.sample.answers[0], self.truth.answer)

    def conclude(self, verdict: str, fact: str = "") -> ParsedTurn:
        """Return a turn that gives a verdict.

        Args:
            verdict: The verdict, one of `visenv.envs.arm.verdicts.verdicts`.
            fact: The fact that the thought names as its reason; ``""`` names none.
        """
        answer = answer_with(verdict, self.truth.rating)
        return ParsedTurn(self._reason(verdict, fact), answer=answer)

    def _reason(self, verdict: str, fact: str) -> str:
        """Return the last thought: the observations, and the response they support."""
        if self.preset.prompt == "brief":
            # The responses come one by one: a small model learns to compare two words long before
            # it learns to look a word up.
            right = verdict.replace("True", "1")
            compared = [
                f"{text} {'yes' if str(number) == right else 'no'}"
                for number, text in enumerate(self.truth.candidates, start=1)
            ]
            return f" {', '.join([fact, *compared] if fact else compared)} "
        seen = f"It is {fact}; so" if fact else "So"
        return f" I have seen enough to judge. {seen} the judgment is {verdict}. "

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return a random verdict or rating."""
        if self.truth.rating is not None:
            low, high = self.truth.rating
            return write_rating(int(rng.integers(low, high + 1)))
        return write_verdict(str(rng.choice(verdicts(len(self.truth.candidates)))))

    @property
    def truth(self) -> JudgingTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(JudgingTruth)


def answer_with(verdict: str, rating: Sequence[int] | None) -> str:
    """Return an answer in the requested form.

    Args:
        verdict: The verdict; for a rating, ``"True"`` is the high end of the scale.
        rating: The scale of a rating; None for another verdict.
    """
    if rating is not None:
        low, high = rating
        return write_rating(high if verdict == "True" else low)
    return write_verdict(verdict)


def wrong_verdict(env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
    """Return a turn with a random wrong verdict, which names no fact as its reason."""
    possible = verdicts(len(env.truth.candidates))
    wrong = [verdict for verdict in possible if verdict not in env.sample.answers]
    return env.conclude(str(rng.choice(wrong)))
