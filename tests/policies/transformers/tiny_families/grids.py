"""Builds tiny models that read an image as one grid of patches, with positions in 3 dimensions."""

from __future__ import annotations

from typing import Any

import transformers as t

from .parts import CHATML, SIZES, byte_level, published, rows_of

_TURNS = ("<|im_start|>", "<|im_end|>")
_QWEN = {
    "image_token": "<|image_pad|>", "video_token": "<|video_pad|>",
    "vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>",
}  # fmt: skip
_GLM = {
    "image_token": "<|image|>", "video_token": "<|video|>",
    "image_start_token": "<|begin_of_image|>", "image_end_token": "<|end_of_image|>",
    "video_start_token": "<|begin_of_video|>", "video_end_token": "<|end_of_video|>",
}  # fmt: skip
_PATCHES: dict[str, Any] = {
    "patch_size": 14, "merge_size": 2, "temporal_patch_size": 2,
    "size": {"shortest_edge": 56 * 56, "longest_edge": 112 * 112},
}  # fmt: skip
_TOWER: dict[str, Any] = {
    "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 14,
    "out_hidden_size": 64,
}  # fmt: skip


def _ids(tokenizer: Any, named: dict[str, str]) -> dict[str, Any]:
    return {f"{name}_id": tokenizer.convert_tokens_to_ids(text) for name, text in named.items()}


def _rope(**others: Any) -> dict[str, Any]:
    """Return rotary positions; the sections are pairs of dimensions for time, height and width."""
    sections = {"mrope_section": [8, 4, 4], "rope_type": "default", "rope_theta": 10_000.0}
    return {"rope_parameters": {**sections, **others}}


def qwen2_vl() -> tuple[Any, Any]:
    """Return processor and configuration: the model before Qwen2.5-VL, without windows."""
    tokenizer = byte_level((*_TURNS, *_QWEN.values()), _QWEN)
    videos = t.Qwen2VLVideoProcessor(patch_size=14)  # type: ignore[attr-defined]
    processor = t.Qwen2VLProcessor(
        t.Qwen2VLImageProcessor(**_PATCHES), tokenizer, videos,
        chat_template=published("qwen2_5_vl"),
    )  # fmt: skip
    tower = {"depth": 2, "embed_dim": 32, "num_heads": 4, "patch_size": 14, "hidden_size": 64}
    config = t.Qwen2VLConfig(
        vision_config=tower,
        text_config=_text("qwen2_vl_text", tokenizer),
        **_ids(tokenizer, _QWEN),
    )
    return processor, config


def qwen3_5() -> tuple[Any, Any]:
    """Return processor and configuration: linear attention, whose cache is a recurrent state."""
    return _linear(t.Qwen3_5Config, "qwen3_5_text")


def qwen3_5_moe() -> tuple[Any, Any]:
    """Return processor and configuration: linear attention, and a mixture of experts."""
    return _linear(
        t.Qwen3_5MoeConfig, "qwen3_5_moe_text", num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=32, shared_expert_intermediate_size=32,
    )  # fmt: skip


def _linear(kind: Any, text_type: str, **others: Any) -> tuple[Any, Any]:
    """Return processor and configuration of a model with a layer of linear attention."""
    tokenizer = byte_level((*_TURNS, *_QWEN.values()), _QWEN)
    processor = t.Qwen3VLProcessor(
        t.Qwen2VLImageProcessor(**_PATCHES), tokenizer, t.Qwen3VLVideoProcessor(patch_size=14),
        chat_template=published("qwen3_5_think"),
    )  # fmt: skip
    text = _text(
        text_type, tokenizer, layer_types=["linear_attention", "full_attention"],
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2,
        linear_num_value_heads=4, **others,
        **_rope(partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True),
    )  # fmt: skip
    config = kind(
        vision_config={**_TOWER, "num_position_embeddings": 64, "out_hidden_size": 32},
        text_config=text,
        **_ids(tokenizer, _QWEN),
    )
    return processor, config


def qwen3_vl_moe() -> tuple[Any, Any]:
    """Return processor and configuration: a mixture of experts, and features of several layers."""
    tokenizer = byte_level((*_TURNS, *_QWEN.values()), _QWEN)
    processor = t.Qwen3VLProcessor(
        t.Qwen2VLImageProcessor(**_PATCHES), tokenizer, t.Qwen3VLVideoProcessor(patch_size=14),
        chat_template=published("qwen3_vl"),
    )  # fmt: skip
    text = _text(
        "qwen3_vl_moe_text", tokenizer, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=32, **_rope(mrope_interleaved=True),
    )  # fmt: skip
    config = t.Qwen3VLMoeConfig(
        vision_config={
            **_TOWER, "num_position_embeddings": 64, "deepstack_visual_indexes": [0]
        },
        text_config=text,
        **_ids(tokenizer, _QWEN),
    )  # fmt: skip
    return processor, config


def glm46v() -> tuple[Any, Any]:
    """Return processor and configuration: a start and an end token, and norms around each layer."""
    tokenizer = byte_level((*_TURNS, *_GLM.values()), _GLM)
    shown = "<|begin_of_image|><|image|><|end_of_image|>"
    processor = t.Glm46VProcessor(
        t.Glm46VImageProcessor(**_PATCHES), tokenizer, t.Glm46VVideoProcessor(),
        chat_template=CHATML.replace("IMAGE", shown),
    )  # fmt: skip
    config = t.Glm46VConfig(
        vision_config={**_TOWER, "image_size": 112},
        text_config=_text("glm4v_text", tokenizer, **_rope(partial_rotary_factor=1.0)),
        **_ids(tokenizer, _GLM),
    )
    return processor, config


def _text(model_type: str, tokenizer: Any, **others: Any) -> dict[str, Any]:
    sizes = {**SIZES, **_rope(), **others}
    return {**sizes, "model_type": model_type, "vocab_size": rows_of(tokenizer)}
