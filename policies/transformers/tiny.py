"""Builds a tiny Qwen-VL offline from its real configuration, for the main job and the tests.

The output folder is an ordinary checkpoint, which stock transformers and vLLM can load. The sizes
and the two initializations in `TinyConfig` were found to learn on two CPU cores; their reasons are
in the field descriptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import transformers

from visenv.garbage import heavy_imports
from visenv.rollout import Env, Mixture

from ..tokens.processor import processor_class, save_processor
from .checkpoint import save_model
from .tiny_tokenizer import EPISODES, TokenizerTexts, build_tokenizer, collect_texts

Architecture = Literal["qwen3_vl", "qwen2_5_vl"]

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' -}}
{%- if message.content is string -%}{{- message.content -}}{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part.type == 'video' -%}{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}
{%- elif 'text' in part -%}{{- part.text -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"""
"""ChatML as in Qwen-VL, without a default system message, because a short context learns faster."""


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Sets sizes and initialization of a tiny Qwen-VL; the defaults are those of the main job.

    Attributes:
        architecture: ``"qwen3_vl"`` learns faster, because its vision tower has learned absolute
            positions; that of Qwen2.5-VL has only rotary ones.
        vocab_size: Maximum number of tokens of the tokenizer, enough for one token per word of a
            task, so that a turn has about 20 tokens.
        view_side: Side of the images, pixels; there is one learned position per patch.
        patch_size: Side of a patch, pixels. Two by two patches are merged into one token, so that a
            view of 96 px has 4 by 4 tokens. A sign is a patch and a half wide.
        hidden_size: Width of the language model.
        layers: Depth of the language model.
        heads: Query heads of the language model; half as many key-value heads.
        head_size: Width of one head.
        mlp_size: Width of the language model's feed-forward.
        vision_hidden_size: Width of the vision tower.
        vision_layers: Depth of the vision tower.
        vision_heads: Heads of the vision tower.
        vision_mlp_size: Width of the vision tower's feed-forward.
        initializer_range: Standard deviation of the weights. The usual 0.02 is for widths in the
            thousands; at this width, signals vanish and the loss stays at its first plateau.
        position_std: Standard deviation of the vision tower's learned positions (Qwen3-VL). At the
            usual 0.02, the patch embeddings dominate them, and locations are not learned in
            hundreds of steps.
        context: Maximum number of tokens in a conversation.
        seed: Seed of the weights; it determines the model.
    """

    architecture: Architecture = "qwen3_vl"
    vocab_size: int = 1024
    view_side: int = 96
    patch_size: int = 12
    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    head_size: int = 32
    mlp_size: int = 384
    vision_hidden_size: int = 96
    vision_layers: int = 2
    vision_heads: int = 3
    vision_mlp_size: int = 256
    initializer_range: float = 0.05
    position_std: float = 0.5
    context: int = 4096
    seed: int = 0


def tiny(
    folder: Path,
    make_env: Callable[[], Env] | Mixture,
    seed: int = 0,
    episodes: int = EPISODES,
) -> Path:
    """Write a model of the default sizes for an environment, and return its folder.

    Args:
        folder: The output folder, which is created if it does not exist.
        make_env: A function that makes the environment, or several environments.
        seed: The seed of the weights.
        episodes: The number of episodes of each player on whose texts the tokenizer is trained.

    Raises:
        RunError: If every episode is aborted.
    """
    return build_tiny(folder, collect_texts(make_env, episodes), TinyConfig(seed=seed))


def build_tiny(folder: Path, texts: TokenizerTexts, config: TinyConfig | None = None) -> Path:
    """Build the model and its processor, and save them as a checkpoint.

    Args:
        folder: The output folder, which is created if it does not exist.
        texts: The texts on which the tokenizer is trained.
        config: The sizes; by default those of the main job.

    Returns:
        The folder.
    """
    config = config or TinyConfig()
    tokenizer = build_tokenizer(config.vocab_size, texts)
    tokenizer.chat_template = CHAT_TEMPLATE
    model = build_model(config, tokenizer)
    image_processor = _image_processor(config)
    processor = processor_class(config.architecture)(
        image_processor, tokenizer, chat_template=CHAT_TEMPLATE
    )
    save_model(model, folder)
    save_processor(processor, folder)
    return folder


@heavy_imports()  # of the modules of the architecture
def build_model(config: TinyConfig, tokenizer: Any) -> Any:
    """Return the randomly initialized model, float32, in evaluation mode."""
    torch.manual_seed(config.seed)
    model: Any
    if config.architecture == "qwen3_vl":
        model = transformers.Qwen3VLForConditionalGeneration(_qwen3_config(config, tokenizer))
        torch.nn.init.normal_(model.model.visual.pos_embed.weight, std=config.position_std)
    else:
        model = transformers.Qwen2_5_VLForConditionalGeneration(_qwen2_5_config(config, tokenizer))
    end, pad = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    model.generation_config.eos_token_id = [end, pad]
    model.generation_config.pad_token_id = pad
    return model.eval()


def _qwen3_config(config: TinyConfig, tokenizer: Any) -> transformers.Qwen3VLConfig:
    # M-RoPE divides the frequencies: a quarter for time, the rest for height and width.
    half = config.head_size // 2
    height = (half - half // 4) // 2
    rope = {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [half // 4, height, half - half // 4 - height],
        "mrope_interleaved": True,
    }
    text = _text_config(config, tokenizer) | {"head_dim": config.head_size, "rope_parameters": rope}
    vision = _vision_config(config) | {
        "num_position_embeddings": (config.view_side // config.patch_size) ** 2,
        "deepstack_visual_indexes": [0],
    }
    return transformers.Qwen3VLConfig(
        text_config=text, vision_config=vision, **_common_config(config, tokenizer)
    )


def _qwen2_5_config(config: TinyConfig, tokenizer: Any) -> transformers.Qwen2_5_VLConfig:
    # Rotary positions alone must encode locations: with a low base, neighboring patches differ, and
    # nearly all frequencies are for height and width.
    side = (config.head_size // 2 - 2) // 2
    rope = {"rope_type": "default", "rope_theta": 100.0, "mrope_section": [2, side, side]}
    text = _text_config(config, tokenizer) | {"rope_parameters": rope}
    vision = _vision_config(config) | {
        "window_size": 8 * config.patch_size,
        "fullatt_block_indexes": list(range(config.vision_layers)),
    }
    return transformers.Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, **_common_config(config, tokenizer)
    )


def _text_config(config: TinyConfig, tokenizer: Any) -> dict[str, Any]:
    end, pad = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    return {
        # As in real checkpoints, the vocabulary is padded, so that tests cover the padding rows.
        "vocab_size": math.ceil((len(tokenizer) + 1) / 64) * 64,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads // 2,
        "intermediate_size": config.mlp_size,
        "max_position_embeddings": config.context,
        "initializer_range": config.initializer_range,
        "tie_word_embeddings": True,
        "bos_token_id": pad,
        "eos_token_id": end,
        "pad_token_id": pad,
    }


def _vision_config(config: TinyConfig) -> dict[str, Any]:
    return {
        "depth": config.vision_layers,
        "hidden_size": config.vision_hidden_size,
        "num_heads": config.vision_heads,
        "intermediate_size": config.vision_mlp_size,
        "patch_size": config.patch_size,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": config.hidden_size,
        "initializer_range": config.initializer_range,
    }


def _common_config(config: TinyConfig, tokenizer: Any) -> dict[str, Any]:
    names = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    ids = {key: tokenizer.convert_tokens_to_ids(name) for key, name in names.items()}
    return ids | {"tie_word_embeddings": True, "initializer_range": config.initializer_range}


def _image_processor(config: TinyConfig) -> Any:
    unit = (2 * config.patch_size) ** 2  # pixels behind one token of the language model
    return transformers.Qwen2VLImageProcessorPil(
        patch_size=config.patch_size,
        merge_size=2,
        temporal_patch_size=2,
        size={"shortest_edge": 4 * unit, "longest_edge": 256 * unit},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
