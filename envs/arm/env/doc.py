"""Defines ArmDoc: judge responses about a long document, retrieving pages (ARM-Thinker)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from visenv.teacher import Teacher

from ..teachers import WrongPage
from .judge import JudgingEnv
from .pages import DocumentPages


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
