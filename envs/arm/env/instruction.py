"""ArmIF: judge whether a text keeps to a constraint, with tools that count (ARM-Thinker)."""

from __future__ import annotations

from typing_extensions import override

from visenv.grammar import ToolCall

from ..samples import candidate_names
from .judge import JudgingEnv


class ArmIF(JudgingEnv):
    """Judge whether a response satisfies a constraint, with 19 tools that check texts.

    ### Description
    An instruction, its image where it has one, a response named ``text_0``, and one constraint of
    the instruction. The tools count words, sentences and paragraphs, and look for substrings,
    keywords and numbers. The response is judged True or False. From "ARM-Thinker: Reinforcing
    Multimodal Generative Reward Models with Agentic Tool Use and Visual Reasoning" (arXiv
    2512.05111), track Multimodal Instruction Following; the checks are those of MM-IFEngine.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: True (or False)</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task, then each check's result.

    ### Starting state
    A sample drawn by the seed: a procedural text, or a row of the data set named.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"``,
    ``"fixed_bonus"``, all paid at the end (`visenv.envs.arm.rewards`), or ``"outcome"``.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy``.

    ### Arguments
    See `visenv.envs.arm.make_if`.

    ### Version history
    v0: first release.
    """

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return the check that decides the constraint, if one does."""
        check = self.truth.check
        if check is None:
            return []
        (response,) = candidate_names(self.sample)
        return [ToolCall(check.name, {"response": response, **check.arguments})]
