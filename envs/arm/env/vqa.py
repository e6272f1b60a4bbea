"""Defines ArmVQA: answer a question about an image by zooming (ARM-Thinker, tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.types import Event, GroundTruth, Image, Message, QuestionTruth

from .. import answer_prompts
from ..answer_judge import ArmAnswerJudge, letters_of, rule_of, score_of
from ..evidence import deciding_boxes, useful
from .base import ArmEnv
from .zoom import crop_calls


class AnswerEnv(ArmEnv):
    """Implements the parts that the environments with plain questions share.

    The source may have a method ``score``, which scores an answer, and an attribute
    ``answer_note``, a note about its answers for the prompt and the judge.

    Args:
        judge: Scores answers that the rule of the data set does not accept; None: only the rule.
        **arguments: See `ArmEnv`.
    """

    last_turn_notice: ClassVar[str] = answer_prompts.ANSWER_NOW

    def __init__(self, *, judge: ArmAnswerJudge | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._judge = judge
        self.rule = rule_of(self.source)
        self._note = str(getattr(self.source, "answer_note", ""))

    @override
    def initial_messages(self) -> list[Message]:
        if not self.sample.answers:
            raise DataError(f"Sample {self.sample.id!r} has no published answer to score against.")
        pictures = self.pictures()
        self.store.images.update(pictures)
        return answer_prompts.opening(
            self.preset.prompt,
            self.sample,
            pictures,
            self.document(),
            self._note,
            self._tool_call,
            list(self.tools.values()),
            self.limits.turns,
        )

    @property
    @override
    def waits(self) -> bool:
        """Return whether `step` may wait for a tool or for the judge."""
        return super().waits or (self._judge is not None and not self.defers)

    @override
    def turn_events(self, turn: ParsedTurn) -> Iterable[Event] | Awaitable[Iterable[Event]]:
        """Return the judge's score of the answer, if there is a judge."""
        answer = self.log.answer
        if self._judge is None or answer is None:
            return ()
        return self._judge.events(self.turn, answer, self.sample, self.rule, self._note)

    @override
    def task_score(self) -> float:
        """Return the score of the answer, 0 to 1."""
        return score_of(self.log, self.sample, self.rule)

    @override
    def oracle_conclusion(self) -> ParsedTurn:
        """Return the most common right answer."""
        truth = self.sample.truth_as(GroundTruth)
        answer = truth.right_response(self.sample.answers)
        return ParsedTurn(answer_prompts.looked(self.preset.prompt, answer), answer=answer)

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return a random letter or option if there is a choice, otherwise a number."""
        options = getattr(self.sample.ground_truth, "options", ())
        choices = list(letters_of(self.sample) or options)
        return str(rng.choice(choices)) if choices else super().random_answer(rng)


class ArmVQA(AnswerEnv):
    """The policy answers a question about images, and can enlarge any part of them.

    ### Description
    The image is shown with a limited number of pixels, so that the relevant detail may be too
    small to see. The crop-and-zoom tool of ArmZoom cuts from the native image. Each crop gets a
    name (``observation_1``…) and can be zoomed into again. The data set's own rule scores the
    answer. The task is from "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with
    Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111, §5.3 and tables 3 and 4): V*Bench,
    HR-Bench, MME-RealWorld, MMMU and others.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the question with its images, then each crop.

    ### Starting state
    A sample that is drawn with the seed: a procedural scene, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.answer_rewards`). ``"outcome"`` is the
    score of the answer.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` (the answer's score, 0 to 1)
    and, if the ground truth has a box, ``hit`` (crops showed the deciding details).

    ### Arguments
    See `visenv.envs.arm.make_vqa`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (QuestionTruth,)
    headline_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "hit")

    @override
    def pictures(self) -> dict[str, Image]:
        if not self.sample.images:
            raise DataError(f"Sample {self.sample.id!r} has no image; ArmVQA needs one.")
        return super().pictures()

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return a crop of each target."""
        truth = self.truth
        target = () if truth.target_box is None else (truth.target_box,)
        return crop_calls(self.tools, truth.target_boxes or target, self.sample.images)

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy`` and, if the ground truth has a box, ``hit``."""
        metrics = super().metrics()
        if deciding_boxes(self.sample):
            metrics["hit"] = float(useful(self.log, self.sample, "evidence"))
        return metrics

    @property
    def truth(self) -> QuestionTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(QuestionTruth)
