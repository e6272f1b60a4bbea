"""Computes the rewards of coding (arXiv 2505.14246, equations 3 to 5), paid for each step.

A sample has two or three steps: name the problems, repair the image unless it has none, answer.
Turns are matched with steps one to one (`visenv.envs.arft.rewards.steps`). The best episode
therefore gets 1 for ``steps`` and 1 for ``format``, the paper's sum, and further turns get nothing.

===========  ====================================================================================
step         accuracy of a turn that does the step, 0 to 1
===========  ====================================================================================
``problem``  1 for the right labels; if all named labels are right but some are missing, the share
             of labels that is named; only the first turn that names labels counts
``code``     procedural samples: 1 for a program that wrote an image in which the answer can be
             read; data sets: 1 for every program that ran without an error (equation 4)
``answer``   token F1, or with ``"em"`` exact match (table 3)
===========  ====================================================================================

In procedural samples, the steps before the answer are paid when such an image was written, so that
the label with a program that changes nothing adds nothing to the answer. If the image has no
problem, the label is paid with the exact answer, and times ``-1 / (K - 1)`` with a wrong one of K
possible answers, so that a guess gains nothing on average.

``format`` is 1 for a turn of one thought and one action and nothing else (equation 3).
``compat="arft"`` is the public rule, which `visenv.envs.arft.compat` computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from visenv.grammar.tags import TagGrammar
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.types import Answered, Event, EventLog, Sample, ToolCalled

from ..compat import (
    PUBLISHED_FORMAT_SUMMARY,
    PUBLISHED_STEPS_SUMMARY,
    TOP,
    accuracy_term,
    format_term,
)
from ..rewards.qa import Compat, exact_match, token_f1
from ..rewards.steps import ANSWER, ReferenceStep, StepRewardWrapper, StepTerms, reference_steps
from .env import ArftCoding
from .ground_truth import CodingTruth


def rewarded(env: ArftCoding, reward: str, compat: Compat) -> RewardWrapper:
    """Wrap the environment with the reward ``"f1"`` or ``"em"``."""
    if compat:
        steps = of_log(partial(accuracy_term, reward=reward))
        terms = [
            RewardTerm("steps", 1.0, steps, PUBLISHED_STEPS_SUMMARY),
            RewardTerm("format", 1.0, of_log(format_term), PUBLISHED_FORMAT_SUMMARY),
        ]
        return StepRewardWrapper(env, terms, TOP)
    return StepRewardWrapper(env, coding_terms(env.tags, reward).terms())


def coding_terms(grammar: TagGrammar, reward: str = "f1") -> StepTerms:
    """Return the terms ``steps`` and ``format``."""
    scored = partial(accuracy, reward=reward)
    return StepTerms(steps_of, scored, grammar.well_formed, first_labels_only, repair_credit)


def steps_of(sample: Sample) -> list[ReferenceStep]:
    """Return the steps of a sample with their weights."""
    before = [(kind, None) for kind in sample.truth_as(CodingTruth).steps if kind != ANSWER]
    return reference_steps(before, None)


def accuracy(
    events: Sequence[Event], step: ReferenceStep, sample: Sample, reward: str
) -> float | None:
    """Return the accuracy of a turn for a step, 0 to 1; None if the turn takes another step.

    The docstring of the module has the accuracy of each kind of step.
    """
    for event in events:
        if step.kind == ANSWER and isinstance(event, Answered):
            score = exact_match if reward == "em" else token_f1
            return score(event.answer, sample.answers)
        if isinstance(event, ToolCalled) and event.ok and event.tool == step.kind:
            named = event.detail.get("labels")
            if named is not None:
                return problem_score(named, sample.truth_as(CodingTruth).problems)
            if event.detail.get("readable", event.detail["status"] == "ok"):
                return 1.0
    return None


def repair_credit(log: EventLog, sample: Sample) -> float:
    """Return the factor of the steps before the answer, at most 1; see the module."""
    truth = sample.truth_as(CodingTruth)
    if not truth.legibility:
        return 1.0
    if "code" in truth.steps:
        return float(any(call.detail.get("readable", False) for call in log.tool_calls if call.ok))
    if log.answer is None or exact_match(log.answer, sample.answers):
        return float(log.answer is not None)
    return -1 / (len(truth.options) - 1) if len(truth.options) > 1 else 0.0


def first_labels_only(log: EventLog) -> EventLog:
    """Return the events without all but the first call that names labels.

    Otherwise the best of several guesses would count, which would reward guessing.
    """
    kept: list[Event] = []
    named = False
    for event in log:
        if isinstance(event, ToolCalled) and event.ok and event.tool == "problem":
            if named:
                continue
            named = True
        kept.append(event)
    return EventLog(kept)


def problem_score(named: Sequence[str], problems: Sequence[str]) -> float:
    """Return the share of the problems that are named; 0 if a wrong problem is named."""
    right = set(named) & set(problems)
    return len(right) / len(set(problems)) if right == set(named) else 0.0
