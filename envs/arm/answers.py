"""Scores answers to plain questions with the rule of the data set, or also with a judge."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_uppercase
from typing import Any, NamedTuple

from visenv.data.source import Source
from visenv.rewards.vqa import vqa_score
from visenv.types import EventLog, QuestionTruth, Sample

AnswerScore = Callable[[str, Sample], float]
"""Computes the score of an answer to a sample's question, 0 to 1."""


class AnswerJudged(NamedTuple):
    """Records the score of a judge.

    Attributes:
        turn: The index of the turn, from 0.
        score: 0 to 1.
        extracted: The short answer that the judge extracted from the policy's answer.
    """

    turn: int
    score: float
    extracted: str


def rule_of(source: Source) -> AnswerScore:
    """Return the source's method ``score``; the VQA score if it has none."""
    own: Any = getattr(source, "score", None)
    return _vqa_score if own is None else own


def score_of(log: EventLog, sample: Sample, rule: AnswerScore) -> float:
    """Return the score of an episode's answer, 0 without one; a judge's score has priority."""
    judged = log.of_type(AnswerJudged)
    if judged:
        return judged[-1].score
    return 0.0 if log.answer is None else float(rule(log.answer, sample))


def short_answer(log: EventLog) -> str | None:
    """Return the answer of an episode, None without one; a judge's extraction has priority."""
    judged = log.of_type(AnswerJudged)
    return judged[-1].extracted if judged else log.answer


def letters_of(sample: Sample) -> str:
    """Return the letters of the options; ``""`` if the question has no lettered options."""
    truth = sample.ground_truth
    options = truth.options if isinstance(truth, QuestionTruth) else ()
    letters = ascii_uppercase[: len(options)]
    return letters if sample.answers and set(sample.answers) <= set(letters) else ""


def _vqa_score(answer: str, sample: Sample) -> float:
    return vqa_score(answer, sample.answers)
