"""ArftSearch: answer a question about an image by searching for what the image does not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.data.source import Source
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.search import Searcher
from visenv.tools import Tool
from visenv.types import Message

from ..base import ArftEnv
from ..presets import SEARCH_PRESETS, ArftSearchPreset
from ..prompts import opening
from . import prompts
from .ground_truth import SearchTruth
from .tools.world import SearchTool


class ArftSearch(ArftEnv):
    """Search, one query to a turn, until a question about an image can be answered.

    ### Description
    The question is about a person or thing that the image shows and that it does not name: who
    founded the company whose sign this is, and where was that person born? The policy tells from
    the image what it is, searches for one fact at a time, reads the passages found, among them some
    of people and things with nearly the same name, and answers. From "Visual Agentic Reinforcement
    Fine-Tuning" (arXiv 2505.14246), MAT-Search.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then ``<search>…</search>`` or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the image, then what each
    search found, inside ``<information>``.

    ### Starting state
    A sample drawn by the seed: a question about a made-up world of linked entities, or a row of the
    data set named.

    ### Reward
    ``"f1"``: steps + format, at most 2, paid step by step, each query that the task needs once
    (`visenv.envs.arft.search.rewards`); ``"em"``: the same with exact match; ``"outcome"``: the
    answer's F1.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which cannot search.
    Aborted where the engine fails beyond its retries: a search that could not be made is not a bad
    one.

    ### Information
    ``info["step"].metrics`` on the last step, each 0 to 1: ``accuracy`` (exact match), ``f1``,
    ``searched`` (at all) and ``found`` (the share of the articles needed that some search found; 0
    where the data set does not name them). Reports are grouped by split (simple or hard) and hops.

    ### Arguments
    See `visenv.envs.arft.make_search`.

    ### Version history
    v0: first release.
    """

    actions: ClassVar[tuple[str, ...]] = ("search",)
    presets: ClassVar[Mapping[str, object]] = SEARCH_PRESETS
    ground_truths: ClassVar[tuple[type, ...]] = (SearchTruth, NoneType)
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
            raise DataError(f"Sample {sample.id!r} has no answers: its split is scored elsewhere.")
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
        """Return the first gold query not searched for yet, then the first reference answer."""
        brief = self.preset.prompt == "brief"
        asked = {call.detail["query"] for call in self.done("search")}
        left = [query for query in self.truth.queries if query not in asked]
        if self.turns_left > 1 and left:
            thought = prompts.wondering(left[0], brief)
            return ParsedTurn(thought, (ToolCall("search", {"query": left[0]}),))
        answer = self.sample.answers[0]
        return ParsedTurn(prompts.knowing(answer, brief), answer=answer)
