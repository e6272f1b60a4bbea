"""Defines ArftSearch: answer a question about an image by searching for facts.

`ImpreciseQuery` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import override

from visenv.data.source import Source
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.search import Searcher
from visenv.teacher import GIVING_UP, LapsingTeacher, Teacher
from visenv.tools import Tool
from visenv.types import Message

from ..base import ArftEnv
from ..presets import SEARCH_PRESETS, ArftSearchPreset
from ..prompts import opening
from . import prompts
from .ground_truth import SearchTruth
from .imprecise import imprecise_query
from .tools import SearchTool

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ImpreciseQuery(LapsingTeacher["ArftSearch"]):
    """Leaves out or mistakes a word of each name, and gives up unless it is lucky.

    It is lucky if the first result is the article that it needs. The thought before a search
    contains the whole query. A name of one word is searched for as it is; in an episode with the
    mistake, no query contains a whole name of several words.

    Attributes:
        mistaken: The share of the names in which a random word is replaced by one of a title in
            another world, 0 to 1. The other names lose the word.

    Raises:
        ConfigurationError: If `mistaken` is not in this range.
    """

    summary: ClassVar[str] = (
        "Leaves out one random word of each name of several words that it searches for, or "
        "mistakes it for another word, and gives up if the first result is another article."
    )
    rate: float = 1.0
    mistaken: float = 0.5

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_share("mistaken")

    @override
    def mistaken_turn(self, env: ArftSearch, rng: np.random.Generator) -> ParsedTurn:
        truth, searches = env.truth, env.done("search")
        if not truth.articles or len(truth.names) != len(truth.queries):
            return env.oracle_turn()  # a row of a data set, whose articles are not known
        found = [call.detail["titles"][:1] for call in searches]
        is_lucky = found == [[title] for title in truth.articles[: len(found)]]
        is_done = len(found) == len(truth.queries)
        if is_done or not is_lucky or env.turns_left <= 1:
            answer = env.sample.answers[0] if is_done and is_lucky else GIVING_UP
            return ParsedTurn(prompts.knowing(answer, env.is_brief), answer=answer)
        query = truth.queries[len(found)]
        call = ToolCall("search", {"query": imprecise_query(truth, len(found), self.mistaken, rng)})
        return ParsedTurn(prompts.wondering(query, env.is_brief), (call,))


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
