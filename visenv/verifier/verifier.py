"""Scores a response with the selected functions and the gate, for rewards and curation."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.rewards import RewardContext, RewardTerm
from visenv.types import EventLog, Sample
from visenv.verifier.grounding import Categories, spatial_score, temporal_score
from visenv.verifier.outcome import outcome_score
from visenv.verifier.reasoning import Mean, reasoning_score
from visenv.verifier.referred import Referred, Selected
from visenv.verifier.selector import select_by_rules, times_of
from visenv.verifier.teachers import Teachers, run_local

ACCURACY = "accuracy"

DEFAULT_WEIGHTS = {ACCURACY: 1.0, "spatial": 1.0, "temporal": 1.0, "reasoning": 1.0}
"""Weights of the terms. The paper gives no values; its w_S and w_G are one spatial or temporal
weight."""

GROUNDING = ("spatial", "temporal")

TERMS = (ACCURACY, *GROUNDING, "reasoning")
"""The terms in the order in which they are computed."""

SUMMARIES: Mapping[str, str] = {
    ACCURACY: "1 if the answer is right, else 0; or the score of the data set, 0 to 1.",
    "spatial": "Share of the points in the response that lie on the object of their label.",
    "temporal": "Mean score of the points, the descriptions of frames and the descriptions of "
    "time spans in the response, 0 to 1; no points count 0.",
    "reasoning": "Probability of the answer after the question and the reasoning, 0 to 1, under "
    "the reasoner.",
}
"""The description of each term, for cards."""

OutcomeScore = Callable[[str, Sample], float]


@dataclass(frozen=True)
class GatedAggregate:
    """Combines the terms of a response: the argument ``combine`` of a `RewardWrapper`.

    The reward is the accuracy if the accuracy is below `threshold`, otherwise the weighted mean of
    the terms. A term that is None is omitted from the mean, with its weight.

    Args:
        threshold: The threshold tau of the paper; the paper does not state its value.
        weights: Weights by the name of the term; 1 for a term that is not named.

    Raises:
        UnknownNameError: If a weight names an unknown term.
        ConfigurationError: If a weight is negative or not finite, that of the accuracy is not
            positive, or the threshold is not in (0, 1].
    """

    threshold: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigurationError(f"threshold must be in (0, 1], got {self.threshold}.")
        for name in self.weights:
            if name not in DEFAULT_WEIGHTS:
                raise UnknownNameError("term", name, DEFAULT_WEIGHTS)
        weights = {**DEFAULT_WEIGHTS, **self.weights}
        if not all(0 <= weight < math.inf for weight in weights.values()) or not weights[ACCURACY]:
            raise ConfigurationError(
                f"Weights must be finite and not negative, and that of {ACCURACY} above 0, got "
                f"{self.weights}."
            )
        object.__setattr__(self, "weights", weights)

    def __call__(self, terms: Mapping[str, float | None]) -> float:
        """Return the reward, between 0 and 1 if all terms are between 0 and 1."""
        accuracy = terms[ACCURACY] or 0.0
        if accuracy < self.threshold:
            return accuracy
        applied = [
            (self.weights[name], value) for name, value in terms.items() if value is not None
        ]
        return sum(weight * value for weight, value in applied) / sum(
            weight for weight, _ in applied
        )


class Verification(NamedTuple):
    """Holds the scores of a response.

    Attributes:
        reward: The output of the gate for these terms, 0 to 1.
        terms: The terms by name; None for one that does not apply.
    """

    reward: float
    terms: Mapping[str, float | None]


@dataclass(frozen=True)
class Verifier:
    """Scores whole responses.

    Args:
        teachers: The models or rules that answer the questions of the scoring functions.
        terms: The names of the terms that count, from `TERMS`; the accuracy always counts.
        gate: Combines the terms.
        empty: The score of a response without points, where they apply: ``"zero"``, or ``"skip"``,
            which omits them and thus rewards ungrounded answers (an ablation). In a video without
            points, ``"zero"`` counts them as a category with the score 0; ``"skip"`` is the mean of
            the other categories, as in the paper.
        categories: Categories of the temporal score, see `temporal_score`.
        mean: Mean of the reasoning score, see `reasoning_score`.
        mask_answer: Whether sentences that state the answer are hidden from the reasoner.
        outcome: The official score of a data set, which replaces `outcome_score`.
    """

    teachers: Teachers
    terms: tuple[str, ...] = TERMS
    gate: GatedAggregate = field(default_factory=GatedAggregate)
    empty: Literal["zero", "skip"] = "zero"
    categories: Categories = 3
    mean: Mean = "geometric"
    mask_answer: bool = False
    outcome: OutcomeScore | None = None

    async def verify(
        self,
        sample: Sample,
        referred: Referred,
        answer: str | None,
        selected: Selected | None = None,
    ) -> Verification:
        """Return the scores of a response.

        Args:
            sample: The sample of the response.
            referred: The points, frames and spans of the response.
            answer: The final answer, or None for a malformed response, which gets 0.
            selected: The scoring functions; None selects them by rules.

        Raises:
            ServiceError: If a teacher failed beyond its retries.
        """
        terms: dict[str, float | None] = dict.fromkeys((ACCURACY, *self.others))
        terms[ACCURACY] = accuracy = await self.accuracy(sample, answer)
        if accuracy >= self.gate.threshold:
            functions = (selected or select_by_rules(sample, referred)).functions
            for name in self.others:
                if _applies(name, functions):
                    terms[name] = await self.score(name, sample, referred, answer or "", functions)
        return Verification(self.gate(terms), terms)

    @property
    def others(self) -> tuple[str, ...]:
        """Return the terms besides the accuracy, in order."""
        return tuple(name for name in TERMS[1:] if name in self.terms)

    def reward_terms(self) -> list[RewardTerm]:
        """Return the terms for a `RewardWrapper` whose ``combine`` is `gate`."""
        names = (ACCURACY, *self.others)
        weights = self.gate.weights
        return [
            RewardTerm(name, weights[name], self._term(name), SUMMARIES[name]) for name in names
        ]

    def _term(self, name: str) -> Callable[[RewardContext], float | Awaitable[float | None] | None]:
        score = partial(_term_of_episode, self, name)
        return partial(_locally, score) if self.teachers.are_local else score

    async def accuracy(self, sample: Sample, answer: str | None) -> float:
        """Return the outcome score of an answer, 0 for None."""
        if answer is None:
            return 0.0
        if self.outcome is not None:
            return float(self.outcome(answer, sample))
        return await outcome_score(sample, answer, self.teachers.equivalence_judge)

    async def score(
        self,
        name: str,
        sample: Sample,
        referred: Referred,
        answer: str,
        functions: tuple[str, ...],
    ) -> float | None:
        """Return one of the other terms, or None if it cannot apply.

        Args:
            name: ``"spatial"``, ``"temporal"`` or ``"reasoning"``.
            sample: The sample of the response.
            referred: The points, frames and spans of the response.
            answer: The final answer.
            functions: The selected scoring functions.
        """
        teachers = self.teachers
        if name == "reasoning":
            if teachers.reasoner is None:
                return None
            return await reasoning_score(
                sample,
                referred.reasoning,
                answer,
                teachers.reasoner,
                mean=self.mean,
                mask_answer=self.mask_answer,
            )
        if self.empty == "skip" and not (referred.points or referred.frames or referred.spans):
            return None
        if name == "temporal":
            return await temporal_score(
                sample,
                times_of(sample),
                referred,
                teachers,
                categories=self.categories,
                needs_points=self.empty == "zero",
            )
        chart = "spatial_chart" in functions
        return await spatial_score(sample, referred.points, teachers, chart=chart)


def _applies(name: str, functions: tuple[str, ...]) -> bool:
    return name in functions or (name == "spatial" and "spatial_chart" in functions)


def _locally(
    score: Callable[[RewardContext], Awaitable[float | None]], context: RewardContext
) -> float | None:
    return run_local(score(context))  # type: ignore[arg-type]  # a coroutine


async def _term_of_episode(verifier: Verifier, name: str, context: RewardContext) -> float | None:
    log, sample = context.log, context.sample
    answer = log.answer
    if name == ACCURACY:
        return await verifier.accuracy(sample, answer)
    if (context.terms[ACCURACY] or 0.0) < verifier.gate.threshold:
        return context.skip("the answer is wrong")
    referred, selected = referred_in(log), _selected_in(log)
    functions = (selected or select_by_rules(sample, referred)).functions
    if not _applies(name, functions):
        return context.skip("this scoring function was not selected")
    value = await verifier.score(name, sample, referred, answer or "", functions)
    return context.skip("nothing to score, or no teacher for it") if value is None else value


def referred_in(log: EventLog) -> Referred:
    """Return the points, frames and spans of the last turn of an episode."""
    found = log.of_type(Referred)
    return found[-1] if found else Referred(0)


def _selected_in(log: EventLog) -> Selected | None:
    found = log.of_type(Selected)
    return found[-1] if found else None
