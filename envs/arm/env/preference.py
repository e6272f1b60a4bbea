"""ArmPreference: which response would people prefer? (ARM-Thinker's general reward data)."""

from __future__ import annotations

from typing_extensions import override

from visenv.grammar import ToolCall

from .zoom import ArmZoom


class ArmPreference(ArmZoom):
    """Judge responses of graded quality, about an image or about text alone.

    ### Description
    An instruction, an image where it has one, and responses that differ in how right and how
    complete they are. The crop-and-zoom tool is there for the image. The data sets are those of
    "ARM-Thinker: Reinforcing Multimodal Generative Reward Models with Agentic Tool Use and Visual
    Reasoning" (arXiv 2512.05111, §3.2 and §5.1): LLaVA-Critic, VL-RewardBench, RewardBench-2.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task, with its image, then each crop.

    ### Starting state
    A sample drawn by the seed: procedural responses, or a row of the data set named.

    ### Reward
    ``"accuracy_format"`` (at most 1.0), paid at the end, since nothing can be verified in text
    alone; the others of `ArmZoom` can be chosen.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy``.

    ### Arguments
    See `visenv.envs.arm.make_preference`.

    ### Version history
    v0: first release.
    """

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return a look at the target of an image; nothing can be verified in text alone."""
        return super().oracle_calls() if self.sample.images else []
