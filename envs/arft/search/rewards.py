"""Computes the rewards of searching (arXiv 2505.14246, equations 3 to 5), paid for each step.

A sample has one step for each gold query, and the answer. Turns are matched with steps one to one
(`visenv.envs.arft.rewards.steps`). The best episode therefore gets 1 for ``steps`` and 1 for
``format``, the paper's sum, and further turns get nothing.

===========  ====================================================================================
step         accuracy of a turn that does the step, 0 to 1
===========  ====================================================================================
``search``   similarity of the query to the gold one (`visenv.envs.arft.search.similarity`); a
             query that is similar to none, that found nothing, or that is repeated, does no step
``answer``   token F1, or with ``"em"`` exact match (table 3)
===========  ====================================================================================

``format`` is 1 for a turn of one thought and one action and nothing else (equation 3). The paper
pays it for any query. Here a query without a matching step gets nothing; otherwise a policy would
be paid for random searches before it answers.

In procedural worlds, where all possible answers are known, the searches are paid with the answer
(``step_rule="answered"``), so that a policy that searches and then guesses gains nothing: their
scores count fully with an exact answer, and times -1 / (K - 1) with a wrong one, where K is the
number of possible answers. ``step_rule="each"`` pays each search as soon as it is made.

With ``compat="arft"``, `visenv.envs.arft.search.compat` computes the reward instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from visenv.grammar.tags import TagGrammar
from visenv.rewards import RewardTerm
from visenv.types import Answered, Event, EventLog, Sample, ToolCalled

from ..rewards.qa import exact_match, token_f1
from ..rewards.steps import ANSWER, ReferenceStep, StepTerms, reference_steps
from .ground_truth import SearchTruth
from .similarity import QuerySimilarity

SEARCH = "search"

StepRule = Literal["answered", "each"]


def search_terms(
    grammar: TagGrammar,
    similarity: QuerySimilarity,
    reward: str = "f1",
    step_rule: StepRule = "each",
) -> list[RewardTerm]:
    """Return the terms ``steps`` and ``format``."""
    credit = _over_chance if step_rule == "answered" else None
    score = partial(accuracy, similarity=similarity, reward=reward)
    return StepTerms(steps_of, score, grammar.well_formed, _without_repeats, credit).terms()


def _over_chance(log: EventLog, sample: Sample) -> float:
    """Return 1 for an exact answer, -1 / (K - 1) for another one, and 0 before the answer."""
    if log.answer is None:
        return 0.0
    if exact_match(log.answer, sample.answers):
        return 1.0
    options = len(sample.truth_as(SearchTruth).options)
    return -1 / (options - 1) if options > 1 else 0.0


def _without_repeats(log: EventLog) -> EventLog:
    """Return the events without searches that repeat an earlier query.

    Two gold queries may be similar; one query must not do both steps.
    """
    asked: set[str] = set()
    kept: list[Event] = []
    for event in log:
        if isinstance(event, ToolCalled) and event.ok:
            query = " ".join(event.detail["query"].casefold().split())
            if query in asked:
                continue
            asked.add(query)
        kept.append(event)
    return EventLog(kept)


def steps_of(sample: Sample) -> list[ReferenceStep]:
    """Return the weighted steps of a sample; the truth of a search is its query and names."""
    truth = sample.truth_as(SearchTruth)
    names = truth.names or [()] * len(truth.queries)
    return reference_steps(
        [(SEARCH, gold) for gold in zip(truth.queries, names, strict=True)], None
    )


def accuracy(
    events: Sequence[Event],
    step: ReferenceStep,
    sample: Sample,
    similarity: QuerySimilarity,
    reward: str,
) -> float | None:
    """Return the accuracy of a turn for a step, 0 to 1; None if the turn takes another step.

    The docstring of the module has the accuracy of each kind of step.
    """
    for event in events:
        if step.kind == ANSWER and isinstance(event, Answered):
            score = exact_match if reward == "em" else token_f1
            return score(event.answer, sample.answers)
        if step.kind == SEARCH and isinstance(event, ToolCalled) and event.ok:
            return similarity(event.detail["query"], *step.truth) or None
    return None
