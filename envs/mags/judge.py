"""Computes the answer term of the reward, with a rule-based judge or a language model as judge.

An exact answer pays 1. Another answer pays 0.5 if the judge scores it at least `JUDGED_RIGHT`.
"""

from __future__ import annotations

from visenv.errors import ConfigurationError
from visenv.rewards import RewardContext, of_log
from visenv.rewards.terms import TermFunction
from visenv.scorers import JsonScore, Judge, Scorer
from visenv.types import EventLog, Sample

from .answers import LONGEST, is_exact, rule_score
from .prompts import JUDGE_PROMPT

JUDGED_RIGHT = 0.7
"""Minimum score of a judge for an answer that pays half of an exact answer."""


def answer_term(judge: str) -> TermFunction:
    """Return the answer term.

    Args:
        judge: ``"rules"``, or a scorer with a language model such as ``"openai:gpt-4o-mini"``.

    Raises:
        ConfigurationError: If `judge` names no scorer.
    """
    return of_log(_answer_by_rules) if judge == "rules" else _JudgedAnswer(open_judge(judge))


def open_judge(judge: str) -> Judge[float]:
    """Return the judge of answers, with three tries.

    Raises:
        ConfigurationError: If `judge` names no scorer.
    """
    if ":" not in judge:
        raise ConfigurationError(
            f'judge must be "rules" or a scorer such as "openai:gpt-4o-mini", got {judge!r}.'
        )
    return Judge(
        Scorer.parse(judge), JUDGE_PROMPT, JsonScore("score"), quoted=("answer",), longest=LONGEST
    )


def _answer_by_rules(log: EventLog, sample: Sample) -> float:
    if log.answer is None:
        return 0.0
    if is_exact(log.answer, sample.answers):
        return 1.0
    return 0.5 * (rule_score(log.answer, sample.answers) >= JUDGED_RIGHT)


class _JudgedAnswer:
    """Implements the answer term with a language model, which is not called for an exact answer."""

    def __init__(self, judge: Judge[float]) -> None:
        self._judge = judge

    async def __call__(self, context: RewardContext) -> float:
        log, sample = context.log, context.sample
        if log.answer is None:
            return 0.0
        if is_exact(log.answer, sample.answers):
            return 1.0
        score = await self._judge.ask(
            question=sample.question,
            reference="; ".join(sample.answers),
            answer=log.answer,
        )
        return 0.5 * (score >= JUDGED_RIGHT)
