"""ArftCoding: repair an image by code that is really run, and answer a question about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.tools import Tool
from visenv.types import Message

from ..base import ArftEnv
from ..prompts import opening
from . import prompts
from .ground_truth import CodingTruth
from .repairs import repair
from .tools import LATEST, ProblemTool, ProgramTool


class ArftCoding(ArftEnv):
    """Say what is wrong with an image, repair it by programs, and answer a question about it.

    ### Description
    The image is turned, dark, overexposed, blurred or noisy, or several of these, or it holds a
    detail too small to be seen; or nothing is wrong. The policy names the problems, writes Python
    with OpenCV that reads ``path_to_input_image.jpg`` and writes ``path_to_output_image.jpg``, sees
    what its program wrote, or its traceback, and answers. Programs run in a sandbox, each on the
    image that the last one wrote. From "Visual Agentic Reinforcement Fine-Tuning" (arXiv
    2505.14246), MAT-Coding.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then ``<problem>{'dark', …}</problem>``,
    ``<code>```python … ```</code>`` or ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the image, then what each step
    came to.

    ### Starting state
    A sample drawn by the seed: a procedural document or scene, or a row of the data set named.

    ### Reward
    ``"f1"``: steps + format, at most 2, paid step by step, each step that the task needs once
    (`visenv.envs.arft.coding.rewards`); ``"em"``: the same with exact match; ``"outcome"``: the
    answer's F1.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step, each 0 to 1: ``accuracy`` (exact match), ``f1``,
    ``named`` (the problems, rightly) and ``wrote`` (a program wrote an image). Reports are grouped
    by split (simple or hard) and problem.

    ### Arguments
    See `visenv.envs.arft.make_coding`.

    ### Version history
    v0: first release.
    """

    actions: ClassVar[tuple[str, ...]] = ("problem", "code")
    ground_truths: ClassVar[tuple[type, ...]] = (CodingTruth,)

    @override
    def make_tools(self) -> Sequence[Tool[Any]]:
        return [ProblemTool(brief=self.preset.prompt == "brief"), self.make_program_tool()]

    def make_program_tool(self) -> ProgramTool:
        """Return the tool that runs programs."""
        return ProgramTool(characters=self.preset.tool_characters)

    @override
    def initial_messages(self) -> list[Message]:
        sample = self.sample
        if len(sample.images) != 1 or not sample.answers:
            raise DataError(
                f"Sample {sample.id!r} has {len(sample.images)} images and {len(sample.answers)} "
                "answers; ArftCoding needs one image, and an answer at least."
            )
        image = self.store.images[LATEST] = sample.images[0]
        facts = prompts.file_size(image.size)
        views = [self.view(image)]
        return opening(self.preset.prompt, self.steps(), views, facts, sample.question)

    @override
    def explain_tools(self) -> str:
        return prompts.steps(self.tags, list(self.tools.values()))

    @property
    def truth(self) -> CodingTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(CodingTruth)

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy`` (exact match), ``f1``, ``named`` and ``wrote``; see the class."""
        named = [call.detail["labels"] for call in self.done("problem")]
        return {
            **super().metrics(),
            "named": float(sorted(self.truth.problems) in named),
            "wrote": float(any(call.detail["written"] for call in self.done("code"))),
        }

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Name the problems, repair the image, give the first reference answer."""
        truth = self.truth
        brief = self.preset.prompt == "brief"
        if self.turns_left > 1 and not self.done("problem"):
            problems = list(truth.problems)
            thought = prompts.looked(problems, brief)
            return ParsedTurn(thought, (ToolCall("problem", {"labels": problems}),))
        if self.turns_left > 1 and "code" in truth.steps and not self.done("code"):
            code = repair(self.sample, brief=brief)
            return ParsedTurn(prompts.repairing(brief), (ToolCall("code", {"code": code}),))
        return ParsedTurn(prompts.seen(brief), answer=self.sample.answers[0])
