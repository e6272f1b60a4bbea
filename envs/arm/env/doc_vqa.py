"""ArmDocVQA: answer a question about a document of many pages, retrieving the pages."""

from __future__ import annotations

from typing import ClassVar

from ..ground_truth import DocumentTruth
from .answer import AnswerEnv
from .pages import DocumentPages


class ArmDocVQA(DocumentPages, AnswerEnv):
    """Answer a question about a document, whose pages are retrieved by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. Two tools show
    pages: the best for a query, side by side, and one page by its number. With ``zoom`` a third
    tool enlarges parts of the pages that were shown. The answer is scored by the data set's own
    rule. From "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use
    and Visual Reasoning" (arXiv 2512.05111, §3.2 and appendix A.2): MP-DocVQA and MMLongBench-Doc.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample drawn by the seed: a procedural report, or a row of the data set named.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"``,
    ``"fixed_bonus"``, all paid at the end (`visenv.envs.arm.answer_rewards`), or ``"outcome"``.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy`` (the answer's score, 0 to 1) and, where
    the truth names evidence pages, ``found`` (all were shown).

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
