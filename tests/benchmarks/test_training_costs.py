"""Tests analytic costs against numbers worked by hand and against the published models."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.training_costs import (
    QWEN2_5_VL,
    ModelSize,
    StepWork,
    activation_bytes,
    exchanged_bytes,
    head_flops,
    image_flops,
    language_flops,
    read_flops,
    state_bytes,
    update_flops,
    vision_flops,
)

# A layer has 8 · (2·8 + 2·4 + 3·16) = 576 matrix weights; a vision layer 4·4² + 3·4·8 = 160.
SMALL = ModelSize("small", 8, 2, 4, 16, 32, True, 8, vision=4, vision_layers=2, vision_full=1)
WORK = StepWork(groups=2, size=3, text=6, image=4, sampled=2, tool_image=3)  # P = 10, C = 5


@pytest.mark.component("torch", "transformers")
@pytest.mark.parametrize("name", QWEN2_5_VL)
def test_parameters_are_those_of_the_architecture(name: str) -> None:
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    model = QWEN2_5_VL[name]
    text: dict[str, Any] = {
        "hidden_size": model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.hidden // 128,
        "num_key_value_heads": model.key_value // 128,
        "intermediate_size": model.mlp,
        "vocab_size": model.vocabulary,
    }
    vision = {
        "depth": model.vision_layers,
        "hidden_size": model.vision,
        "intermediate_size": model.vision_mlp,
        "out_hidden_size": model.hidden,
        "num_heads": 16,
    }
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=model.tied
    )
    with torch.device("meta"):
        built = Qwen2_5_VLForConditionalGeneration(config)
        built.tie_weights()
    parameters = dict(built.named_parameters())
    tower = sum(each.numel() for name, each in parameters.items() if "visual" in name)
    assert tower == model.tower
    assert sum(each.numel() for each in parameters.values()) == model.parameters


def test_published_sizes() -> None:
    sizes = [round(model.parameters / 1e9, 2) for model in QWEN2_5_VL.values()]
    assert sizes == [3.75, 8.29, 73.41]
    # 2 (keys and values) · 36 layers · 2 heads of 128 · 2 bytes
    assert QWEN2_5_VL["3B"].key_value_bytes == 36_864


def test_tokens_and_pairs_by_hand() -> None:
    assert WORK.tokens(shared=True) == 2 * (10 + 3 * 5) == 50
    assert WORK.tokens(shared=False) == 2 * 3 * (10 + 5) == 90
    # A prompt has 10·11/2 = 55 pairs, a completion 5·10 + 5·6/2 = 65.
    assert WORK.pairs(shared=True) == 2 * 55 + 6 * 65 == 500
    assert WORK.pairs(shared=False) == 6 * (55 + 65) == 720 == 6 * (15 * 16 // 2)


def test_group_of_one_gains_nothing() -> None:
    alone = StepWork(groups=5, size=1)
    assert alone.tokens(shared=True) == alone.tokens(shared=False)
    assert update_flops(SMALL, alone, shared=True) == update_flops(SMALL, alone, shared=False)


def test_forward_flops_by_hand() -> None:
    # Matrices: 2 · 2 layers · 576 · 50 tokens = 115,200; attention: 4 · 8 · 2 · 500 = 32,000.
    assert language_flops(SMALL, WORK, shared=True) == 147_200
    # 2 · 2 · 576 · 90 = 207,360 and 4 · 8 · 2 · 720 = 46,080.
    assert language_flops(SMALL, WORK, shared=False) == 253_440
    assert head_flops(SMALL, 12) == 2 * 8 * 32 * 12 == 6_144


def test_vision_flops_by_hand() -> None:
    # 3 tokens are 12 patches. One layer attends within windows, here all 12 patches (fewer than
    # 64); the other attends to all 12. A patch takes 2 · (2 · 160 + 1176 · 4) = 10,048 for matrices
    # and 4 · 4 · 24 = 384 for attention; the merger takes 2 · (16² + 16 · 8) = 768 per token.
    assert image_flops(SMALL, 3) == 12 * 10_432 + 3 * 768 == 127_488
    # 4 tokens: 16 · (10,048 + 4 · 4 · 32) + 4 · 768 = 172,032.
    assert image_flops(SMALL, 4) == 172_032
    assert image_flops(SMALL, 0) == 0
    assert vision_flops(SMALL, WORK, shared=True) == 2 * 172_032 + 6 * 127_488
    assert vision_flops(SMALL, WORK, shared=False) == 6 * (172_032 + 127_488)
    # 100 tokens are 400 patches: the windowed layer attends to 64 of them, the other to all 400.
    assert image_flops(SMALL, 100) == 400 * (10_048 + 16 * 464) + 100 * 768


def test_update_flops_by_hand() -> None:
    vision = 2 * 172_032 + 6 * 127_488
    forward = 147_200 + 6_144  # all layers, and the head for 6 · 2 sampled tokens
    assert update_flops(SMALL, WORK, shared=True) == 3 * forward + vision
    assert update_flops(SMALL, WORK, shared=True, lora=True) == 2 * forward + vision
    assert update_flops(SMALL, WORK, shared=True, frozen_vision=False) == 3 * (forward + vision)


def test_read_flops_counts_shared_tokens_once_for_a_group() -> None:
    # Without the sampled tokens: 2 · (10 + 3 · 3) = 38 tokens, 2 · 55 + 6 · (3 · 10 + 6) = 326
    # pairs.
    language = 2 * 2 * 576 * 38 + 4 * 8 * 2 * 326
    assert read_flops(SMALL, WORK) == language + 2 * 172_032 + 6 * 127_488


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        # Figure 1 of the ZeRO paper: 7.5 G parameters on 64 GPUs take 120, 31.4, 16.6 and 1.9 GB.
        (0, 120e9),
        (1, 4 * 7.5e9 + 12 * 7.5e9 / 64),
        (2, 2 * 7.5e9 + 14 * 7.5e9 / 64),
        (3, 16 * 7.5e9 / 64),
    ],
)
def test_state_by_zero_stage(stage: int, expected: float) -> None:
    counted = state_bytes(7.5e9, 7.5e9, stage, 64, gradient_bytes=2)
    assert counted == pytest.approx(expected)
    published = {0: 120, 1: 31.4, 2: 16.6, 3: 1.9}[stage]
    assert counted / 1e9 == pytest.approx(published, abs=0.05)


def test_gradients_take_four_bytes() -> None:
    # 2 + 4 + 12 = 18 bytes; under ZeRO-2 on 8 GPUs 2 + 16 / 8 = 4.
    assert state_bytes(1000, 1000, 0, 1) == 18_000
    assert state_bytes(1000, 1000, 2, 8) == 4_000


def test_frozen_weights_have_neither_gradients_nor_moments() -> None:
    assert state_bytes(100, 10, 0, 1) == 2 * 100 + 16 * 10
    assert state_bytes(100, 10, 3, 4) == (2 * 100 + 16 * 10) / 4


def test_activations_by_hand() -> None:
    # Stored: 2 · 8 · 2 layers = 32 bytes per token; in one layer: 2 · (48 + 8 + 48) = 208.
    assert activation_bytes(SMALL, 10, chunk=5) == 10 * 240 + 3 * 4 * 5 * 32


def test_exchanged_bytes_by_hand() -> None:
    # 3/4 of the following: ZeRO-2 sends 2 · 10 for each of 5 micro-batches and once for the
    # weights; ZeRO-3 sends 4 · 100 + 20 for each.
    assert exchanged_bytes(100, 10, 2, 4, 5) == 0.75 * (5 * 20 + 20)
    assert exchanged_bytes(100, 10, 3, 4, 5) == 0.75 * 5 * 420
    assert exchanged_bytes(100, 10, 0, 1, 5) == 0


def test_lora_by_hand() -> None:
    # rank 2, 2 layers: q and o 16 each, k and v 12 each, three of the MLP 24 each
    assert SMALL.lora(2) == 2 * 2 * (2 * 16 + 2 * 12 + 3 * 24)
