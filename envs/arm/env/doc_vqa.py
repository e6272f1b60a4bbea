"""Defines ArmDocVQA: answer a question about a long document, retrieving pages."""

from __future__ import annotations

from typing import ClassVar

from ..ground_truth import DocumentTruth
from .doc import DocumentPages
from .vqa import AnswerEnv


class ArmDocVQA(DocumentPages, AnswerEnv):
    """The policy answers a question about a document, and retrieves pages by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. One tool shows the
    best pages for a query, side by side; another shows one page by its number. With ``zoom``, a
    third tool enlarges parts of shown pages. The data set's own rule scores the answer. The task
    is from "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use and
    Visual Reasoning" (arXiv 2512.05111, §3.2 and appendix A.2): MP-DocVQA and MMLongBench-Doc.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample that is drawn with the seed: a procedural report, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.answer_rewards`). ``"outcome"`` is the
    score of the answer.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` (the answer's score, 0 to 1)
    and, if the ground truth names evidence pages, ``found`` (all of them were shown).

    ### Arguments
    See `visenv.envs.arm.make_doc_vqa`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (DocumentTruth,)
    headline_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "found")

    @property
    def truth(self) -> DocumentTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(DocumentTruth)
