"""Defines ArmDoc: judge responses about a long document, retrieving pages (ARM-Thinker).

`WrongPage` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import LapsingTeacher, Teacher

from ..tools.pages import PageByQuery
from .judge import JudgingEnv, wrong_verdict
from .pages import DocumentPages


@dataclass(frozen=True)
class WrongPage(LapsingTeacher["ArmDoc"]):
    """Finds evidence only on the first pages; otherwise it asks for a page near the evidence.

    It then believes a wrong response. No rewarded episode is about a later page, so a filter of
    the episodes does not show how to find one.

    Attributes:
        known: The number of pages on which the teacher finds evidence.

    Raises:
        ConfigurationError: If `known` is negative.
    """

    summary: ClassVar[str] = (
        "Finds evidence only on the first three pages; for a later page it asks for another one "
        "near it and gives a wrong verdict."
    )
    rate: float = 1.0
    known: int = 3

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.known < 0:
            raise ConfigurationError(f"known must be 0 or more, got {self.known!r}.")

    @override
    def mistaken_turn(self, env: ArmDoc, rng: np.random.Generator) -> ParsedTurn:
        turn, last = env.oracle_turn(), max(env.truth.evidence_pages, default=0)
        if last <= self.known:
            return turn
        if turn.answer is not None or env.log.tool_calls:
            return wrong_verdict(env, rng)
        near = _pages_near(env, last)
        if not near:
            return wrong_verdict(env, rng)
        arguments = {"filename": env.document(), "query": f"page {rng.choice(near)}"}
        return turn._replace(calls=(ToolCall(PageByQuery.name, arguments),))


def _pages_near(env: ArmDoc, page: int) -> list[int]:
    """Return the pages without evidence that are one or two pages before or after a page."""
    pages = range(max(page - 2, 1), min(page + 2, len(env.opened())) + 1)
    return [near for near in pages if near not in env.truth.evidence_pages]


class ArmDoc(DocumentPages, JudgingEnv):
    """The policy judges responses about a document, and retrieves pages by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. One tool shows the
    best pages for a query, side by side; another shows one page by its number. With ``zoom``, a
    third tool enlarges parts of shown pages. The policy judges one response True or False, or names
    the best of several. The task is from "ARM-Thinker: Reinforcing Multimodal Generative Reward
    Models with Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111), track Multimodal Long
    Document.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample that is drawn with the seed: a procedural report, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.rewards`). ``"outcome"`` is the
    accuracy.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` and, if the ground truth names
    evidence pages, ``found`` (all of them were shown).

    ### Arguments
    See `visenv.envs.arm.make_doc`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"wrong_page": WrongPage}
    )
