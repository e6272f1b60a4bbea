"""Bytes: what training holds on each GPU, and what it sends between them."""

from __future__ import annotations

from .model import ModelSize


def state_bytes(weights: float, trained: float, stage: int, gpus: int) -> float:
    """Return the bytes of weights, gradients and optimizer state on one GPU.

    bf16 weights (2 bytes) and gradients (2); fp32 master weights and Adam's two moments (12), as
    in ZeRO (arXiv:1910.02054, section 3.1 and figure 1). Each stage splits one more of them over
    the GPUs: 1 the optimizer, 2 the gradients, 3 the weights.

    Args:
        weights: Parameters in all.
        trained: Those that learn.
        stage: ZeRO stage, 0 to 3.
        gpus: How many share.
    """
    held = ((3, 2 * weights), (2, 2 * trained), (1, 12 * trained))
    return sum(each / gpus if stage >= splits else each for splits, each in held)


def activation_bytes(model: ModelSize, tokens: int, chunk: int = 1024) -> int:
    """Return the bytes that one forward pass of `tokens` holds, in bf16, every layer checkpointed.

    Each layer keeps its input. One layer at a time has all its tensors: input, two norms, q, the
    outputs of the attention and of o, k and v, gate, up and their product. One chunk of logits, its
    log-softmax and its gradient are fp32. A frozen vision tower keeps nothing.
    """
    kept = 2 * model.hidden * model.layers
    layer = 2 * (6 * model.hidden + 2 * model.key_value + 3 * model.mlp)
    return tokens * (kept + layer) + 3 * 4 * chunk * model.vocabulary


def exchanged_bytes(
    weights: float, trained: float, stage: int, gpus: int, micro_batches: int
) -> float:
    """Return the bytes that each GPU sends in one optimizer step; in a ring all but its own share.

    Stage 3 gathers the weights for the forward and again for the backward pass of every micro-batch
    and scatters its gradients; stage 2 scatters the gradients of every micro-batch and gathers
    the new weights once.
    """
    gradients = 2 * trained * micro_batches
    gathered = 4 * weights * micro_batches if stage == 3 else 2 * trained
    return (gpus - 1) / gpus * (gradients + gathered)
