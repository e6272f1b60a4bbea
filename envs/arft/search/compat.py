"""Implements ArftSearch as in Visual-ARFT's public code, for ``compat="arft"``.

Turns are compared with the sample's steps by position: turn i with step i, where the steps are the
gold queries in order, then the answer. In the public code, each training row is one step.

===========  ================================================  ==================================
step         accuracy                                          form, the same for all steps
===========  ================================================  ==================================
``search``   similarity to the gold query (``"published"``);   a thought, and a query or an answer
             0 for a turn that opens ``<answer>``
``answer``   F1 of sets of words; 0 for a turn that opens      the same
             ``<search>``
===========  ================================================  ==================================

The public code first asks math_verify whether the whole turn equals the solution, which gives 1 for
the same number anywhere in the turn; this is not repeated. Steps have equal weights, up to 2 each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from typing_extensions import override

from visenv.rewards import RewardTerm, of_log
from visenv.tools import Tool
from visenv.types import EventLog, Image, Sample, ToolCalled

from ..compat import (
    PUBLISHED_FORMAT_SUMMARY,
    PUBLISHED_STEPS_SUMMARY,
    RebuiltArftPrompt,
    answer_score,
    body_of,
    has_form,
)
from .env import ArftSearch
from .ground_truth import SearchTruth
from .similarity import QuerySimilarity
from .tools import SnippetTool

_STEPS = ("search", "answer")


class PublishedSearch(RebuiltArftPrompt, ArftSearch):
    """Implements `ArftSearch` with ``compat="arft"``.

    A search shows the texts of its results, without titles, and no message if it failed.
    """

    @override
    def make_tools(self) -> Sequence[Tool[Any]]:
        """Return the search tool, whose results are part of the next prompt."""
        return [
            SnippetTool(
                self.searcher,
                passages=self.preset.passages,
                characters=self.preset.tool_characters,
            )
        ]

    @override
    def current_images(self) -> tuple[Image, ...]:
        """Return the images of the sample."""
        return self.sample.images

    @override
    def comment(self, call: ToolCalled) -> str:
        """Return the results of the search."""
        return f"\n<information> {call.detail['shown']} </information> "


def published_terms(similarity: QuerySimilarity, reward: str) -> list[RewardTerm]:
    """Return the terms ``steps`` and ``format``, summed over turns; turn i belongs to step i."""
    steps = partial(_accuracies, similarity=similarity, reward=reward)
    return [
        RewardTerm("steps", 1.0, of_log(steps), PUBLISHED_STEPS_SUMMARY),
        RewardTerm("format", 1.0, of_log(_forms), PUBLISHED_FORMAT_SUMMARY),
    ]


def accuracy(
    text: str, query: str | None, sample: Sample, similarity: QuerySimilarity, reward: str = "f1"
) -> float:
    """Return the accuracy of a turn that should search for `query`, or answer if it is None."""
    if query is None:
        return 0.0 if "<search>" in text else answer_score(text, sample, reward)
    return 0.0 if "<answer>" in text else similarity(body_of(text, "search"), query)


def well_formed(text: str) -> bool:
    """Return whether a turn is exactly a thought and then a query or an answer."""
    kind = "answer" if "<answer>" in text and "</answer>" in text else "search"
    return has_form(text, kind, _STEPS)


def _accuracies(log: EventLog, sample: Sample, similarity: QuerySimilarity, reward: str) -> float:
    return sum(
        accuracy(text, query, sample, similarity, reward) for text, query in _placed(log, sample)
    )


def _forms(log: EventLog, sample: Sample) -> float:
    return float(sum(well_formed(text) for text, _ in _placed(log, sample)))


def _placed(log: EventLog, sample: Sample) -> Iterator[tuple[str, str | None]]:
    """Yield each turn's text with the query of its step; None for the answer's step."""
    queries = [*sample.truth_as(SearchTruth).queries, None]
    return zip((turn.text for turn in log.turns), queries, strict=False)
