"""Builds tiny models that read an image as tiles, or as rows of patches with breaks."""

from __future__ import annotations

from typing import Any

import transformers as t

from .parts import (
    CHATML,
    CHATML_WITH_VIDEO,
    SMOL,
    byte_level,
    published,
    rows_of,
    text_config,
    vision,
)


def llava_onevision() -> tuple[Any, Any]:
    """Return processor and configuration: a grid of tiles with new lines, no token types."""
    control = ("<|im_start|>", "<|im_end|>", "<image>", "<video>")
    tokenizer = byte_level(control, {"image_token": "<image>", "video_token": "<video>"})
    images = t.LlavaOnevisionImageProcessor(
        size={"height": 28, "width": 28}, image_grid_pinpoints=[[28, 56], [56, 28], [56, 56]]
    )
    processor = t.LlavaOnevisionProcessor(
        images, tokenizer,
        t.LlavaOnevisionVideoProcessor(size={"height": 28, "width": 28}),
        num_image_tokens=4, vision_feature_select_strategy="full",
        chat_template=CHATML_WITH_VIDEO.replace("IMAGE", "<image>").replace("VIDEO", "<video>"),
    )  # fmt: skip
    config = t.LlavaOnevisionConfig(
        vision_config=t.SiglipVisionConfig(**vision(28)),
        text_config=text_config(t.Qwen2Config, rows_of(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=[[28, 56], [56, 28], [56, 56]],
        vision_feature_layer=-1,
    )
    return processor, config


def internvl() -> tuple[Any, Any]:
    """Return processor and configuration: tiles, with a start and an end token for each."""
    control = ("<|im_start|>", "<|im_end|>", "<IMG_CONTEXT>", "<img>", "</img>", "<video>")
    tokenizer = byte_level(
        control,
        {
            "start_image_token": "<img>", "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>",
        },
    )  # fmt: skip
    images = t.GotOcr2ImageProcessor(
        size={"height": 28, "width": 28}, crop_to_patches=True, min_patches=1, max_patches=4
    )
    processor = t.InternVLProcessor(
        images, tokenizer, t.InternVLVideoProcessor(), image_seq_length=1,
        chat_template=CHATML.replace("IMAGE", "<IMG_CONTEXT>"),
    )  # fmt: skip
    sides = {"image_size": [28, 28], "patch_size": [14, 14]}
    config = t.InternVLConfig(
        vision_config=t.InternVLVisionConfig(**{**vision(28), **sides}),
        text_config=text_config(t.Qwen2Config, rows_of(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=1,
    )
    return processor, config


_IDEFICS_TOKENS = (
    "<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>",
    *[f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)],
)  # fmt: skip


def idefics3() -> tuple[Any, Any]:
    """Return processor and configuration: tiles with names of rows and columns, and a thumbnail."""
    tokenizer = byte_level(_IDEFICS_TOKENS, {"image_token": "<image>"})
    images = t.Idefics3ImageProcessor(
        size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, do_image_splitting=True
    )
    processor = t.Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=SMOL)
    config = t.Idefics3Config(
        vision_config=t.Idefics3VisionConfig(**vision(56)),
        text_config=text_config(t.LlamaConfig, rows_of(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    return processor, config


def smolvlm() -> tuple[Any, Any]:
    """Return processor and configuration: tiles like those of Idefics3, the published template."""
    tokenizer = byte_level((*_IDEFICS_TOKENS, "<video>"), {"image_token": "<image>"})
    images = t.SmolVLMImageProcessor(
        size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, do_image_splitting=True
    )
    videos = t.SmolVLMVideoProcessor()  # type: ignore[attr-defined]
    processor = t.SmolVLMProcessor(
        images, tokenizer, videos, image_seq_len=4,
        chat_template=published("smolvlm"),
    )  # fmt: skip
    config = t.SmolVLMConfig(
        vision_config=t.SmolVLMVisionConfig(**vision(56)),
        text_config=text_config(t.LlamaConfig, rows_of(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    return processor, config


def mistral3() -> tuple[Any, Any]:
    """Return processor and configuration: one run of placeholders for each row of patches."""
    control = ("<|im_start|>", "<|im_end|>", "[IMG]", "[IMG_BREAK]", "[IMG_END]")
    named = {
        "image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]",
    }  # fmt: skip
    tokenizer = byte_level(control, named)
    images = t.PixtralImageProcessor(size={"longest_edge": 112}, patch_size=14)
    processor = t.PixtralProcessor(
        images, tokenizer, patch_size=14, spatial_merge_size=2,
        chat_template=CHATML.replace("IMAGE", "[IMG]"),
    )  # fmt: skip
    config = t.Mistral3Config(
        vision_config=t.PixtralVisionConfig(**vision(112)),
        text_config=text_config(t.MistralConfig, rows_of(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=2,
    )
    return processor, config


def lfm2_vl() -> tuple[Any, Any]:
    """Return processor and configuration: tiles of several sizes, and layers of convolutions."""
    tiles = [f"<|img_row_{row}_col_{column}|>" for row in range(1, 5) for column in range(1, 5)]
    named = {
        "image_token": "<image>", "image_start_token": "<|image_start|>",
        "image_end_token": "<|image_end|>", "image_thumbnail_token": "<|img_thumbnail|>",
    }  # fmt: skip
    tokenizer = byte_level(("<|im_start|>", "<|im_end|>", *named.values(), *tiles), named)
    images = t.Lfm2VlImageProcessor(
        tile_size=56, max_image_tokens=16, min_image_tokens=4, encoder_patch_size=14
    )
    processor = t.Lfm2VlProcessor(images, tokenizer, chat_template=published("lfm2_2_5_vl"))
    tower = {name: value for name, value in vision(56).items() if name != "image_size"}
    text = text_config(t.Lfm2Config, rows_of(tokenizer), layer_types=["conv", "full_attention"])
    config = t.Lfm2VlConfig(
        vision_config=t.Siglip2VisionConfig(**tower, num_patches=64),
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        projector_hidden_size=32,
        tie_word_embeddings=False,
    )
    return processor, config
