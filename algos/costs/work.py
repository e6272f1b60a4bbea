"""The work of a step: tokens, attended pairs and FLOPs, with the shared prompt read once or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .model import ModelSize

_WINDOW = 64
"""Patches in a window of the vision tower's attention: 112 x 112 px."""


@dataclass(frozen=True)
class StepWork:
    """Describes what a step plays; lengths are means, and episodes are taken to be alike.

    The defaults are TextVQA shown at 1024 px (1024 x 768: 37 x 27 tokens) with one zoom.
    """

    groups: int = 128
    """Samples in a step."""
    size: int = 8
    """Episodes played on each."""
    text: int = 400
    """Text tokens of a prompt."""
    image: int = 37 * 27
    """Image tokens of a prompt."""
    sampled: int = 300
    """Tokens a member samples."""
    tool_image: int = 37 * 27
    """Image tokens a member's tools return."""

    @property
    def prompt(self) -> int:
        """Return the number of tokens that the members of a group share."""
        return self.text + self.image

    @property
    def completion(self) -> int:
        """Return the number of tokens of a member alone."""
        return self.sampled + self.tool_image

    @property
    def episodes(self) -> int:
        """Return the number of episodes in a step."""
        return self.groups * self.size

    def tokens(self, shared: bool) -> int:
        """Return the tokens read: ``N (P + G C)`` with the prompt shared, else ``N G (P + C)``."""
        if shared:
            return self.groups * (self.prompt + self.size * self.completion)
        return self.episodes * (self.prompt + self.completion)

    def pairs(self, shared: bool) -> int:
        """Return the number of pairs of a query and a key it attends to.

        A prompt has ``P (P + 1) / 2``; a completion after it ``C P + C (C + 1) / 2``.
        """
        prompt, own = self.prompt, self.completion
        prompts = self.groups if shared else self.episodes
        after = own * prompt + own * (own + 1) // 2
        return prompts * (prompt * (prompt + 1) // 2) + self.episodes * after


def image_flops(model: ModelSize, tokens: int) -> int:
    """Return the forward FLOPs of the vision tower for one image; a token is four patches."""
    if not tokens:
        return 0
    patches = 4 * tokens
    windowed = (model.vision_layers - model.vision_full) * min(_WINDOW, patches)
    attended = windowed + model.vision_full * patches
    matrices = model.vision_layers * model.vision_matrices + model.embedding_matrix
    per_patch = 2 * matrices + 4 * model.vision * attended
    return patches * per_patch + tokens * 2 * model.merger_matrices


def vision_flops(model: ModelSize, work: StepWork, shared: bool) -> int:
    """Return the forward FLOPs of the vision tower for a step; shared prompts count once."""
    prompts = work.groups if shared else work.episodes
    opening = prompts * image_flops(model, work.image)
    return opening + work.episodes * image_flops(model, work.tool_image)


def language_flops(model: ModelSize, work: StepWork, shared: bool) -> int:
    """Return the forward FLOPs of the language model's layers.

    2 for each weight and token; 4 for each channel, layer and attended pair (scores and values).
    """
    matrices = 2 * model.layers * model.layer_matrices * work.tokens(shared)
    return matrices + 4 * model.hidden * model.layers * work.pairs(shared)


def head_flops(model: ModelSize, tokens: int) -> int:
    """Return the forward FLOPs of the log-probabilities of so many tokens."""
    return 2 * model.hidden * model.vocabulary * tokens


def read_flops(model: ModelSize, work: StepWork) -> int:
    """Return the forward FLOPs of a step's tokens: prompts once for a group, tools' images too.

    What they sample is read too, but token by token, at the speed of memory.
    """
    shown = replace(work, sampled=0)
    return language_flops(model, shown, True) + vision_flops(model, shown, True)


def update_flops(
    model: ModelSize,
    work: StepWork,
    shared: bool,
    *,
    lora: bool = False,
    frozen_vision: bool = True,
) -> int:
    """Return the forward and backward FLOPs of a step's update; the numerator of its MFU.

    Backward costs twice the forward pass: gradients of inputs, and of weights, which LoRA does
    without. A frozen tower has none. What gradient checkpointing computes again is not counted.
    """
    forward = language_flops(model, work, shared)
    forward += head_flops(model, work.episodes * work.sampled)
    vision = vision_flops(model, work, shared) * (1 if frozen_vision else 3)
    return (2 if lora else 3) * forward + vision
