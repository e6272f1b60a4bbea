"""Defines ArmIF: judge whether a text satisfies a constraint, with text checks (ARM-Thinker).

`MisreadsResult` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import LapsingTeacher, Teacher

from ..ground_truth import candidate_names
from .base import JudgingEnv, wrong_verdict


@dataclass(frozen=True)
class MisreadsResult(LapsingTeacher["JudgingEnv"]):
    """Calls the check that decides, and believes the opposite of its result if it checks a range.

    The teacher takes "true" for "outside of the range". No rewarded episode is about a range.
    """

    summary: ClassVar[str] = (
        "Calls the check that decides, and takes its result for the opposite if it checks whether "
        "a number is in a range."
    )
    rate: float = 1.0

    @override
    def mistaken_turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        turn, check = env.oracle_turn(), env.truth.check
        if turn.answer is None or check is None or "in_range" not in check.name:
            return turn
        return wrong_verdict(env, rng)


class ArmIF(JudgingEnv):
    """The policy judges whether a response satisfies a constraint, with 19 tools that check texts.

    ### Description
    The policy sees an instruction, possibly with an image, a response named ``text_0``, and one
    constraint of the instruction. The tools count words, sentences and paragraphs, and search for
    substrings, keywords and numbers. The policy judges the response True or False. The task is from
    "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use and Visual
    Reasoning" (arXiv 2512.05111), track Multimodal Instruction Following; the checks are those of
    MM-IFEngine.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: True (or False)</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task, then the result of each check.

    ### Starting state
    A sample that is drawn with the seed: a procedural text, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.rewards`). ``"outcome"`` is the
    accuracy.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains ``accuracy`` on the last step.

    ### Arguments
    See `visenv.envs.arm.make_if`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"misreads_result": MisreadsResult}
    )

    @override
    def names_in_thoughts(self) -> list[str]:
        """Return the names of the responses, whose texts are too long to repeat."""
        return candidate_names(self.sample)

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return the call of the check that decides the constraint, if there is one."""
        check = self.truth.check
        if check is None:
            return []
        (response,) = candidate_names(self.sample)
        return [ToolCall(check.name, {"response": response, **check.arguments})]
