"""Counts FLOPs and memory of the updates of `gpu.py` by `benchmarks.training_costs`, without a GPU.

An update reads every distinct token and image once. The gradient of the language model takes twice
its forward pass; the vision tower is frozen and has no gradient. Softmax, norms and activations are
not counted, nor is what gradient checkpointing computes again.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.random_vlm import IMAGE_TOKENS, RESULT_TOKENS, SIZES, Shape, full_blocks
from benchmarks.training_costs import (
    ModelSize,
    StepWork,
    head_flops,
    image_flops,
    language_flops,
    state_bytes,
)

MFU_FORMULA = "MFU = FLOPs needed by the shared pass / (seconds * peak FLOP/s of the device)"


def model_size(size: str, layers: int | None = None) -> ModelSize:
    """Return the shapes of a size of `random_vlm`.

    Args:
        size: A key of `SIZES`.
        layers: Number of layers of the language model, if not that of the size.
    """
    text, vision = SIZES[size]["text"], SIZES[size]["vision"]
    head_size = text["hidden_size"] // text["num_attention_heads"]
    return ModelSize(
        size,
        hidden=text["hidden_size"],
        layers=layers or text["num_hidden_layers"],
        key_value=head_size * text["num_key_value_heads"],
        mlp=text["intermediate_size"],
        vocabulary=text["vocab_size"],
        tied=text.get("tie_word_embeddings", True),
        vision_mlp=vision["intermediate_size"],
        vision=vision["hidden_size"],
        vision_layers=vision["depth"],
        vision_full=len(full_blocks(vision["depth"])),
    )


def needed_flops(model: ModelSize, shape: Shape, members: int) -> int:
    """Return the FLOPs that an update on a group needs, with the shared prompt read once.

    Args:
        model: The shapes of the model.
        shape: The episodes: one prompt, and one context of each member, with its own turns.
        members: Members of the group.
    """
    work = StepWork(
        groups=1,
        size=members,
        text=shape.prompt,
        image=0,
        sampled=shape.sampled,
        tool_image=shape.shown,
    )
    text = language_flops(model, work, shared=True) + head_flops(model, members * shape.sampled)
    results = members if shape.shown else 0
    vision = shape.images * image_flops(model, IMAGE_TOKENS)
    return 3 * text + vision + results * image_flops(model, RESULT_TOKENS)


def training_bytes(model: ModelSize) -> int:
    """Return the bytes of weights, gradients and optimizer, as under DeepSpeed in bfloat16.

    A trained parameter takes 18 bytes: 2 for the weight, 4 for the gradient, 4 for the float32 copy
    of the weight and 8 for the moments of AdamW. A parameter of the frozen vision tower takes 2.
    """
    return int(state_bytes(model.parameters, model.language, stage=0, gpus=1))


def layers_that_fit(model: ModelSize, memory: int, reserve: int) -> int:
    """Return the largest number of layers of the language model whose training fits in memory.

    Args:
        model: The shapes of the model, whose number of layers is the upper limit.
        memory: Bytes of the device.
        reserve: Bytes for activations and logits.

    Returns:
        At least 1.
    """
    one, two = (training_bytes(replace(model, layers=layers)) for layers in (1, 2))
    return max(1, min(model.layers, 1 + (memory - reserve - one) // (two - one)))
