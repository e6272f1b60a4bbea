"""ArmDoc: judge responses about a document of many pages, retrieving the pages (ARM-Thinker)."""

from __future__ import annotations

from .judge import JudgingEnv
from .pages import DocumentPages


class ArmDoc(DocumentPages, JudgingEnv):
    """Judge responses about a document, whose pages are retrieved by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. Two tools show
    pages: the best for a query, side by side, and one page by its number. With ``zoom`` a third
    tool enlarges parts of the pages that were shown. One response is judged
    True or False, or the best of several is named. From "ARM-Thinker: Reinforcing Multimodal
    Generative Reward Models with Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111), track
    Multimodal Long Document.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample drawn by the seed: a procedural report, or a row of the data set named.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"``,
    ``"fixed_bonus"``, all paid at the end (`visenv.envs.arm.rewards`), or ``"outcome"``.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy`` and, where the truth names
    evidence pages, ``found`` (all were shown).

    ### Arguments
    See `visenv.envs.arm.make_doc`.

    ### Version history
    v0: first release.
    """
