"""The rewards of searching (arXiv 2505.14246, equations 3 to 5), paid for every step.

A sample takes as many searches as it has gold queries, and an answer. Turns are matched with them
one to one (`visenv.envs.arft.rewards.steps`), so that the best episode gets ``steps`` 1 and
``format`` 1, the paper's sum, and further turns get nothing.

===========  ====================================================================================
step         accuracy of a turn that takes it, 0 to 1
===========  ====================================================================================
``search``   similarity of the query to the gold one (`visenv.envs.arft.search.similarity`); a
             query that is similar to none, that found nothing, or that was asked before, takes no
             step
``answer``   token F1, or with ``"em"`` exact match (table 3)
===========  ====================================================================================

``format`` is 1 for a turn of one thought and one action and nothing else (equation 3). The paper
pays it for any query: here one that asks for another thing is worth nothing, or a policy would be
paid for searching at random before it answers.

``compat="arft"`` pays by `visenv.envs.arft.search.compat` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from visenv.grammar.tags import TagGrammar
from visenv.rewards import RewardTerm
from visenv.types import Answered, Event, EventLog, Sample, ToolCalled

from ..rewards.qa import exact_match, token_f1
from ..rewards.steps import ANSWER, ReferenceStep, StepTerms, reference_steps
from .ground_truth import SearchTruth
from .similarity import QuerySimilarity

SEARCH = "search"


def search_terms(
    grammar: TagGrammar, similarity: QuerySimilarity, reward: str = "f1"
) -> list[RewardTerm]:
    """Return the two terms of the table."""
    score = partial(accuracy, similarity=similarity, reward=reward)
    return StepTerms(steps_of, score, grammar.well_formed, _without_repeats).terms()


def _without_repeats(log: EventLog) -> EventLog:
    """Return the events without searches that repeat an earlier query.

    Two gold queries may be alike; a single one must not take both steps.
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
    """Return the steps of a sample with weights; the truth of a search is its query and names."""
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
    """Return how well a turn takes a step, None if it does not; see the module."""
    for event in events:
        if step.kind == ANSWER and isinstance(event, Answered):
            score = exact_match if reward == "em" else token_f1
            return score(event.answer, sample.answers)
        if step.kind == SEARCH and isinstance(event, ToolCalled) and event.ok:
            return similarity(event.detail["query"], *step.truth) or None
    return None
