"""Defines ArmPreference: judge which response people prefer (ARM-Thinker's reward data)."""

from __future__ import annotations

from typing_extensions import override

from visenv.grammar import ToolCall

from .zoom import ArmZoom


class ArmPreference(ArmZoom):
    """The policy judges responses of graded quality, about an image or about text alone.

    ### Description
    The policy sees an instruction, possibly with an image, and responses that differ in
    correctness and completeness. The crop-and-zoom tool enlarges parts of the image. The data sets
    are those of "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use
    and Visual Reasoning" (arXiv 2512.05111, §3.2 and §5.1): LLaVA-Critic, VL-RewardBench,
    RewardBench-2.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with its image, then each crop.

    ### Starting state
    A sample that is drawn with the seed: procedural responses, or a row of a data set.

    ### Reward
    ``"accuracy_format"`` (at most 1.0) is the default and paid at the end, because tools cannot
    verify text alone. The other rewards of `ArmZoom` are available.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains ``accuracy`` on the last step.

    ### Arguments
    See `visenv.envs.arm.make_preference`.

    ### Version history
    v0: first release.
    """

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return a crop of the target if there is an image; tools cannot verify text alone."""
        return super().oracle_calls() if self.sample.images else []
