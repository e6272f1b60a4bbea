"""Builds tiny Gemma models, which attend in both directions within an image."""

from __future__ import annotations

from typing import Any

import transformers as t

from tests.policies.tokens import spelled

from .parts import GEMMA, byte_level, published, rows_of, text_config, vision


def gemma3() -> tuple[Any, Any]:
    """Return processor and configuration: byte fallback, attention in both directions in images."""
    turns = ("<bos>", "</s>", "<start_of_turn>", "<end_of_turn>")
    images = ("<start_of_image>", "<end_of_image>", "<image_soft_token>")
    built = spelled.with_byte_fallback((*turns, *images))
    named = {
        "image_token": "<image_soft_token>", "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
    }  # fmt: skip
    tokenizer: Any = t.PreTrainedTokenizerFast(
        tokenizer_object=built.backend_tokenizer, bos_token="<bos>", eos_token="</s>",
        pad_token="</s>", unk_token="<unk>", extra_special_tokens=named,
    )  # fmt: skip
    image_processor = t.Gemma3ImageProcessor(size={"height": 56, "width": 56})
    processor = t.Gemma3Processor(
        image_processor, tokenizer, image_seq_length=4, chat_template=GEMMA
    )
    layers = ["sliding_attention", "full_attention"]
    text = text_config(
        t.Gemma3TextConfig, rows_of(tokenizer), layer_types=layers, sliding_window=16
    )
    config = t.Gemma3Config(
        vision_config=t.SiglipVisionConfig(**vision(56)),
        text_config=text,
        mm_tokens_per_image=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
        boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
    )
    return processor, config


def gemma4() -> tuple[Any, Any]:
    """Return processor and configuration: images of any size, embeddings for each layer."""
    control = (
        "<bos>", "<|turn>", "<turn|>", "<|image>", "<image|>", "<|image|>", "<|video|>",
        "<|audio|>", "<|audio>", "<audio|>", "<|channel>", "<channel|>", "<|think|>",
    )  # fmt: skip
    named = {
        "boi_token": "<|image>", "eoi_token": "<image|>", "image_token": "<|image|>",
        "boa_token": "<|audio>", "eoa_token": "<audio|>", "audio_token": "<|audio|>",
        "video_token": "<|video|>",
    }  # fmt: skip
    tokenizer = byte_level(control, named)
    tokenizer.bos_token = "<bos>"
    images = t.Gemma4ImageProcessor(patch_size=14, max_soft_tokens=70, pooling_kernel_size=2)
    processor = t.Gemma4Processor(
        t.Gemma4AudioFeatureExtractor(), images, tokenizer,
        t.Gemma4VideoProcessor(patch_size=14, max_soft_tokens=70, pooling_kernel_size=2),
        chat_template=published("gemma4"),
    )  # fmt: skip
    rows = rows_of(tokenizer)
    text = text_config(
        t.Gemma4TextConfig, rows, layer_types=["sliding_attention", "full_attention"],
        sliding_window=16, global_head_dim=32, vocab_size_per_layer_input=rows,
        hidden_size_per_layer_input=8, num_kv_shared_layers=0,
        use_bidirectional_attention="vision",
    )  # fmt: skip
    tower = t.Gemma4VisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, head_dim=8, patch_size=14, pooling_kernel_size=2,
        position_embedding_size=512,
    )  # fmt: skip
    ids: dict[str, Any] = {
        f"{name}_id": tokenizer.convert_tokens_to_ids(token) for name, token in named.items()
    }
    config = t.Gemma4Config(text_config=text, vision_config=tower, audio_config=None, **ids)
    return processor, config
