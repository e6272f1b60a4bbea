"""Estimates the bytes that training holds on each GPU and sends between GPUs."""

from __future__ import annotations

from .model import ModelSize


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
