"""Defines ArftCoding: repair an image with executed code, and answer a question about it.

`WrongRepair` is its teacher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import GIVING_UP, LapsingTeacher, Teacher
from visenv.tools import Tool
from visenv.types import Message

from ..base import ArftEnv
from ..prompts import opening
from . import prompts
from .ground_truth import CodingTruth, Distortion
from .repairs import repair
from .tools import LATEST, ProblemTool, ProgramTool

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class WrongRepair(LapsingTeacher["ArftCoding"]):
    """Repairs the image with a wrong strength or rotation, and gives up.

    An image without a problem needs no repair. The teacher then answers like the oracle.
    """

    summary: ClassVar[str] = (
        "Repairs the image with a wrong strength or rotation and gives up, in 75 % of the episodes "
        "whose image has a problem."
    )
    rate: float = 0.75

    @override
    def mistaken_turn(self, env: ArftCoding, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            gives_up = ParsedTurn(prompts.unseen(env.is_brief), answer=GIVING_UP)
            return gives_up if "code" in env.truth.steps else turn
        if turn.calls[0].name != "code":
            return turn
        code = repair(replace(env.sample, ground_truth=mistaken(env.truth)), brief=env.is_brief)
        return turn._replace(calls=(ToolCall("code", {"code": code}),))


def mistaken(truth: CodingTruth) -> CodingTruth:
    """Return the problems with weaker strengths and other rotations, so that `repair` is wrong."""
    box = None
    if truth.box is not None:
        left, top, right, bottom = truth.box
        # The part on the other side of the middle of the image.
        box = (1000 - right, 1000 - bottom, 1000 - left, 1000 - top)
    return replace(truth, box=box, distortions=tuple(map(_mistaken, truth.distortions)))


def _mistaken(distortion: Distortion) -> Distortion:
    match distortion:
        case Distortion(name="rotation90"):
            return replace(distortion, name="rotation180", clockwise=None)
        case Distortion(name="rotation180"):
            return replace(distortion, name="rotation90", clockwise=True)
        case Distortion(gain=float(gain)):
            return replace(distortion, gain=math.sqrt(gain))
        case Distortion(veil=float(veil)):
            return replace(distortion, veil=math.sqrt(veil))
        case Distortion(kernel=int(kernel), sigma=float(sigma)):
            return replace(distortion, kernel=kernel // 4 * 2 + 1, sigma=sigma / 2)
    return replace(distortion, density=None)  # noise: black and white pixels are only smoothed


class ArftCoding(ArftEnv):
    """The policy names the defects of an image, repairs it with programs, and answers a question.

    ### Description
    The image is rotated, dark, overexposed, blurred or noisy, or has several of these defects. It
    may also contain a detail that is too small to be seen, or have no defect. The policy names the
    problems and writes Python with OpenCV that reads ``path_to_input_image.jpg`` and writes
    ``path_to_output_image.jpg``. It then sees the image that its program wrote, or the traceback,
    and answers. Programs run in a sandbox. Each program starts from the image that the last one
    wrote. The task is MAT-Coding of "Visual Agentic Reinforcement Fine-Tuning" (arXiv 2505.14246).

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then ``<problem>{'dark', …}</problem>``,
    ``<code>```python … ```</code>`` or ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the image, then the result of
    each step.

    ### Starting state
    A sample that is drawn with the seed: a procedural document or scene, or a row of a data set.

    ### Reward
    ``"f1"`` is the sum of ``steps`` and ``format``, at most 2. It is paid after each turn, once
    for each step that the task needs (`visenv.envs.arft.coding.rewards`). ``"em"`` uses exact match
    instead of F1. ``"outcome"`` is the F1 of the answer.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains on the last step, each from 0 to 1: ``accuracy`` (exact
    match), ``f1``, ``named`` (the right problems were named) and ``wrote`` (a program wrote an
    image). Reports are grouped by split (simple or hard) and problem.

    ### Arguments
    See `visenv.envs.arft.make_coding`.

    ### Version history
    v0: first release.
    """

    actions: ClassVar[tuple[str, ...]] = ("problem", "code")
    ground_truths: ClassVar[tuple[type, ...]] = (CodingTruth,)
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"wrong_repair": WrongRepair}
    )

    @override
    def make_tools(self) -> Sequence[Tool[Any]]:
        return [ProblemTool(brief=self.is_brief), self.make_program_tool()]

    def make_program_tool(self) -> ProgramTool:
        """Return the tool that runs programs."""
        return ProgramTool(
            characters=self.preset.tool_characters, max_pixels=self.preset.image_pixels
        )

    @override
    def initial_messages(self) -> list[Message]:
        sample = self.sample
        if len(sample.images) != 1 or not sample.answers:
            raise DataError(
                f"Sample {sample.id!r} has {len(sample.images)} images and {len(sample.answers)} "
                "answers; ArftCoding needs one image and at least one answer."
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
        """Name the problems, repair the image, then give the first reference answer."""
        truth = self.truth
        brief = self.is_brief
        if self.turns_left > 1 and not self.done("problem"):
            problems = list(truth.problems)
            thought = prompts.looked(problems, brief)
            return ParsedTurn(thought, (ToolCall("problem", {"labels": problems}),))
        if self.turns_left > 1 and "code" in truth.steps and not self.done("code"):
            code = repair(self.sample, brief=brief)
            return ParsedTurn(prompts.repairing(brief), (ToolCall("code", {"code": code}),))
        return ParsedTurn(prompts.seen(brief), answer=self.sample.answers[0])
