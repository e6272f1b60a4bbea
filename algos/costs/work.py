"""Computes the tokens, attended pairs and FLOPs of a step, with and without prefix sharing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .model import ModelSize

_WINDOW = 64
"""The number of patches in an attention window of the vision tower, 112 x 112 px."""


@dataclass(frozen=True)
class StepWork:
    """Describes the episodes of a step by mean lengths; all episodes are assumed to be equal.

    The defaults are for TextVQA at 1024 px (1024 x 768: 37 x 27 tokens) with one zoom.
    """

    groups: int = 128
    """Number of samples in a step."""
    size: int = 8
    """Number of episodes of each sample."""
    text: int = 400
    """Number of text tokens of a prompt."""
    image: int = 37 * 27
    """Number of image tokens of a prompt."""
    sampled: int = 300
    """Number of sampled tokens of an episode."""
    tool_image: int = 37 * 27
    """Number of image tokens that the tools return in an episode."""

    @property
    def prompt(self) -> int:
        """Return the number of tokens that the members of a group share."""
        return self.text + self.image

    @property
    def completion(self) -> int:
        """Return the number of tokens of an episode after its prompt."""
        return self.sampled + self.tool_image

    @property
    def episodes(self) -> int:
        """Return the number of episodes in a step."""
        return self.groups * self.size

    def tokens(self, shared: bool) -> int:
        """Return the computed tokens: ``N (P + G C)`` if prompts are shared, else ``N G (P + C)``.

        N is the number of groups, G their size, P the length of a prompt, C of a completion.
        """
        if shared:
            return self.groups * (self.prompt + self.size * self.completion)
        return self.episodes * (self.prompt + self.completion)

    def pairs(self, shared: bool) -> int:
        """Return the number of pairs of a query and a key to which it attends.

        A prompt has ``P (P + 1) / 2`` pairs, and a completion ``C P + C (C + 1) / 2``.
        """
        prompt, own = self.prompt, self.completion
        prompts = self.groups if shared else self.episodes
        after = own * prompt + own * (own + 1) // 2
        return prompts * (prompt * (prompt + 1) // 2) + self.episodes * after


def image_flops(model: ModelSize, tokens: int) -> int:
    """Return the forward FLOPs of the vision tower for one image; a token has four patches."""
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

    There are 2 FLOPs for each weight and token, and 4 for each channel, layer and attended pair
    (scores and values).
    """
    matrices = 2 * model.layers * model.layer_matrices * work.tokens(shared)
    return matrices + 4 * model.hidden * model.layers * work.pairs(shared)


def head_flops(model: ModelSize, tokens: int) -> int:
    """Return the forward FLOPs of computing the log-probabilities of `tokens` tokens."""
    return 2 * model.hidden * model.vocabulary * tokens


def read_flops(model: ModelSize, work: StepWork) -> int:
    """Return the prefill FLOPs of a step: a prompt once for its group, and the images of tools.

    Sampled tokens are decoded one by one; memory bandwidth limits their speed, not FLOPs.
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
    """Return the forward and backward FLOPs of the update of a step, the numerator of its MFU.

    The backward pass costs twice the forward pass: once for the gradients of inputs, and once for
    those of weights, which LoRA does not need. A frozen tower has no backward pass. Activations
    that gradient checkpointing recomputes are not counted.
    """
    forward = language_flops(model, work, shared)
    forward += head_flops(model, work.episodes * work.sampled)
    vision = vision_flops(model, work, shared) * (1 if frozen_vision else 3)
    return (2 if lora else 3) * forward + vision
