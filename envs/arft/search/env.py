"""Defines ArftSearch: answer a question about an image by searching for facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.data.source import Source
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.search import Searcher
from visenv.teacher import Teacher
from visenv.tools import Tool
from visenv.types import Message

from ..base import ArftEnv
from ..presets import SEARCH_PRESETS, ArftSearchPreset
from ..prompts import opening
from . import prompts
from .ground_truth import SearchTruth
from .teacher import ImpreciseQuery
from .tools import SearchTool


class ArftSearch(ArftEnv):
    """The policy answers a question about an image by searching for facts, one query per turn.

    ### Description
    The question is about a person or thing that the image shows without its name, for example:
    who founded the company whose sign this is, and where was that person born? The policy
    identifies the entity from the image, searches for one fact at a time, reads the passages that
    were found, and answers. Some passages are about people and things with nearly the same name.
    The task is MAT-Search of "Visual Agentic Reinforcement Fine-Tuning" (arXiv 2505.14246).

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then ``<search>…</search>`` or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the image, then the results of
    each search, inside ``<information>``.

    ### Starting state
    A sample that is drawn with the seed: a question about a fictional world of linked entities, or
    a row of a data set.

    ### Reward
    ``"f1"`` is the sum of ``steps`` and ``format``, at most 2. It is paid after each turn, once
    for each query that the task needs (`visenv.envs.arft.search.rewards`). ``"em"`` uses exact
    match instead of F1. ``"outcome"`` is the F1 of the answer.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn cannot search. It is aborted if the engine fails after all retries, because the policy
    is not responsible for such a failure.

    ### Information
    ``info["step"].metrics`` contains on the last step, each from 0 to 1: ``accuracy`` (exact
    match), ``f1``, ``searched`` (there was a search) and ``found`` (the share of the needed
    articles that a search found; 0 if the data set does not name them). Reports are grouped by
    split (simple or hard) and hops.

    ### Arguments
    See `visenv.envs.arft.make_search`.

    ### Version history
    v0: first release.
    """

    actions: ClassVar[tuple[str, ...]] = ("search",)
    presets: ClassVar[Mapping[str, object]] = SEARCH_PRESETS
    ground_truths: ClassVar[tuple[type, ...]] = (SearchTruth, NoneType)
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"imprecise_query": ImpreciseQuery}
    )
    preset: ArftSearchPreset

    def __init__(
        self,
        *,
        source: Source,
        preset: ArftSearchPreset,
        searcher: Searcher | None = None,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.searcher = searcher
        super().__init__(source=source, preset=preset, render_mode=render_mode, on_abort=on_abort)

    @override
    def make_tools(self) -> Sequence[Tool[Any]]:
        return [SearchTool(self.searcher, passages=self.preset.passages)]

    @override
    def initial_messages(self) -> list[Message]:
        sample = self.sample
        if not sample.answers:
            raise DataError(f"Sample {sample.id!r} has no answers: they are not published.")
        views = [self.view(image) for image in sample.images]
        return opening(self.preset.prompt, self.steps(), views, "", sample.question)

    @override
    def explain_tools(self) -> str:
        return prompts.steps(self.tags, list(self.tools.values()))

    @property
    def truth(self) -> SearchTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(SearchTruth)

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy``, ``f1``, ``searched`` and ``found``; see the class."""
        searches = self.done("search")
        titles = {title for call in searches for title in call.detail["titles"]}
        wanted = set(self.truth.articles)
        return {
            **super().metrics(),
            "searched": float(bool(searches)),
            "found": len(wanted & titles) / len(wanted) if wanted else 0.0,
        }

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Return the first gold query not yet searched for, then the first reference answer."""
        left = self.queries_left()
        if self.turns_left > 1 and left:
            thought = prompts.wondering(left[0], self.is_brief)
            return ParsedTurn(thought, (ToolCall("search", {"query": left[0]}),))
        answer = self.sample.answers[0]
        return ParsedTurn(prompts.knowing(answer, self.is_brief), answer=answer)

    def queries_left(self) -> list[str]:
        """Return the gold queries that have not been searched for, in their order."""
        asked = {call.detail["query"] for call in self.done("search")}
        return [query for query in self.truth.queries if query not in asked]
