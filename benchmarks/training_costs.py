"""Estimates the tokens, FLOPs and bytes of a training step from the sizes of model and episodes.

The tokens, attended pairs and FLOPs are those with and without prefix sharing. The models are those
of Qwen2.5-VL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_PATCH_VALUES = 3 * 2 * 14 * 14
"""The number of values in a patch: colors, frames, rows and columns."""

_WINDOW = 64
"""The number of patches in an attention window of the vision tower, 112 x 112 px."""


@dataclass(frozen=True)
class ModelSize:
    """Holds the sizes of a Qwen2.5-VL model, from its published ``config.json``.

    Attributes:
        name: The usual name of the size, such as ``"3B"``.
        hidden: Width of the language model, and of all its query heads together.
        layers: Depth of the language model.
        key_value: Width of the keys of all heads, and of the values; a head has 128 channels.
        mlp: Width inside the MLP.
        vocabulary: Number of rows of the embedding.
        tied: Whether the language-model head shares the weights of the embedding.
        vision_mlp: Width inside the MLP of the vision tower.
        vision: Width of the vision tower.
        vision_layers: Depth of the vision tower.
        vision_full: Number of layers of the vision tower that attend to the whole image; the others
            attend to windows of 8 x 8 patches.
    """

    name: str
    hidden: int
    layers: int
    key_value: int
    mlp: int
    vocabulary: int
    tied: bool
    vision_mlp: int
    vision: int = 1280
    vision_layers: int = 32
    vision_full: int = 4

    @property
    def layer_matrices(self) -> int:
        """Return the number of weights in the matrices of a layer: q, o, k, v, three of the MLP."""
        return self.hidden * (2 * self.hidden + 2 * self.key_value + 3 * self.mlp)

    @property
    def language(self) -> int:
        """Return the number of parameters of the language model."""
        vectors = self.hidden + 2 * self.key_value + 2 * self.hidden  # biases of q, k, v; two norms
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * (self.layer_matrices + vectors) + self.hidden + embeddings

    @property
    def vision_matrices(self) -> int:
        """Return the number of weights in the matrices of a vision layer: q, k, v, o and MLP."""
        return 4 * self.vision**2 + 3 * self.vision * self.vision_mlp

    @property
    def embedding_matrix(self) -> int:
        """Return the number of weights that embed a patch."""
        return _PATCH_VALUES * self.vision

    @property
    def merger_matrices(self) -> int:
        """Return the number of weights that merge four patches into a token."""
        return (4 * self.vision) ** 2 + 4 * self.vision * self.hidden

    @property
    def tower(self) -> int:
        """Return the number of parameters of the vision tower with its merger."""
        # Biases of q, k, v and o, of gate and up, and of down; two norms.
        vectors = 4 * self.vision + 2 * self.vision_mlp + self.vision + 2 * self.vision
        merger_vectors = self.vision + 4 * self.vision + self.hidden
        layers = self.vision_layers * (self.vision_matrices + vectors)
        return layers + self.embedding_matrix + self.merger_matrices + merger_vectors

    @property
    def parameters(self) -> int:
        """Return the number of all parameters."""
        return self.language + self.tower

    def lora(self, rank: int) -> int:
        """Return the number of parameters of LoRA adapters on the matrices of all layers."""
        square, narrow = 2 * 2 * self.hidden, 2 * (self.hidden + self.key_value)
        return self.layers * rank * (square + narrow + 3 * (self.hidden + self.mlp))

    @property
    def key_value_bytes(self) -> int:
        """Return the bytes of the keys and values of one token in bf16."""
        return 2 * self.layers * self.key_value * 2


QWEN2_5_VL = {
    model.name: model
    for model in (
        ModelSize("3B", 2048, 36, 2 * 128, 11008, 151936, True, 3420),
        ModelSize("7B", 3584, 28, 4 * 128, 18944, 152064, False, 3420),
        ModelSize("72B", 8192, 80, 8 * 128, 29568, 152064, False, 3456),
    )
}
"""Sizes from the ``config.json`` of ``Qwen/Qwen2.5-VL-{3B,7B,72B}-Instruct``."""


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


def state_bytes(
    weights: float, trained: float, stage: int, gpus: int, gradient_bytes: int = 4
) -> float:
    """Return the bytes of weights, gradients and optimizer state on one GPU.

    A parameter takes 2 bytes as a bf16 weight. A trained parameter also takes 4 bytes for its
    gradient, because micro-batches are accumulated in fp32, and 12 for its fp32 master weight and
    the two moments of Adam. These 18 bytes are those that `benchmarks/gpu.py` measures; ZeRO
    (arXiv:1910.02054, section 3.1 and figure 1) counts 16, with gradients in bf16. Stage 1 shards
    the optimizer state over the GPUs, stage 2 also the gradients, stage 3 also the weights. The
    buckets of DeepSpeed's stage 2 are not included: 2 GB with its default sizes.

    Args:
        weights: The number of parameters.
        trained: The number of trained parameters.
        stage: The ZeRO stage, 0 to 3.
        gpus: The number of GPUs.
        gradient_bytes: The bytes of a gradient.
    """
    held = ((3, 2 * weights), (2, gradient_bytes * trained), (1, 12 * trained))
    return sum(each / gpus if stage >= splits else each for splits, each in held)


def activation_bytes(model: ModelSize, tokens: int, chunk: int = 1024) -> int:
    """Return the activation bytes of a forward pass of `tokens`, with every layer checkpointed.

    Each layer keeps its input in bf16. One layer at a time holds all its bf16 tensors: input, two
    norms, q, the outputs of the attention and of o, k and v, gate, up and their product. One chunk
    of logits, its log-softmax and its gradient are fp32. A frozen vision tower keeps no
    activations.
    """
    kept = 2 * model.hidden * model.layers
    layer = 2 * (6 * model.hidden + 2 * model.key_value + 3 * model.mlp)
    return tokens * (kept + layer) + 3 * 4 * chunk * model.vocabulary


def exchanged_bytes(
    weights: float, trained: float, stage: int, gpus: int, micro_batches: int
) -> float:
    """Return the bytes that each GPU sends in one optimizer step.

    In a ring, a GPU sends everything except its own share. Stage 3 gathers the weights for the
    forward pass and again for the backward pass of every micro-batch, and scatters its gradients.
    Stage 2 scatters the gradients of every micro-batch and gathers the new weights once.
    """
    gradients = 2 * trained * micro_batches
    gathered = 4 * weights * micro_batches if stage == 3 else 2 * trained
    return (gpus - 1) / gpus * (gradients + gathered)
