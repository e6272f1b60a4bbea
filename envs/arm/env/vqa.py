"""ArmVQA: answer a question about an image, zooming in to see it (ARM-Thinker, tables 3 and 4)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ToolCall
from visenv.types import Image, QuestionTruth

from ..evidence import deciding_boxes, useful
from .answer import AnswerEnv
from .zoom import crop_calls


class ArmVQA(AnswerEnv):
    """Answer a question about images, of which the policy can enlarge any part.

    ### Description
    The image is shown within a pixel budget; what the question asks for may be too small to see.
    The crop-and-zoom tool of ArmZoom cuts from the native image; each crop gets a name
    (``observation_1``…) and can be zoomed into again. The answer is scored by the data set's own
    rule. From "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use
    and Visual Reasoning" (arXiv 2512.05111, §5.3 and tables 3 and 4): V*Bench, HR-Bench,
    MME-RealWorld, MMMU and others.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>…</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the question with its images, then each crop.

    ### Starting state
    A sample drawn by the seed: a procedural scene, or a row of the data set named.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"``,
    ``"fixed_bonus"``, all paid at the end (`visenv.envs.arm.answer_rewards`), or ``"outcome"``.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy`` (the answer's score, 0 to 1) and, where
    the truth has a box, ``hit`` (crops showed what decides).

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
        """Return ``accuracy`` and, where the truth has a box, ``hit``."""
        metrics = super().metrics()
        if deciding_boxes(self.sample):
            metrics["hit"] = float(useful(self.log, self.sample, "evidence"))
        return metrics

    @property
    def truth(self) -> QuestionTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(QuestionTruth)
