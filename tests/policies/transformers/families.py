"""Builds tiny checkpoints of real architectures that visenv does not know, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers as t
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.policies.tokens import spelled

CHATML = (
    "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\n' -}}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- 'IMAGE' -}}"
    "{%- else -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
"""A template of the kind of Qwen; IMAGE is the placeholder."""

GEMMA = (
    "{{- '<bos>' -}}{%- if messages[0].role == 'system' -%}"
    "{%- set before = messages[0].content[0].text + '\n\n' -%}{%- set rest = messages[1:] -%}"
    "{%- else -%}{%- set before = '' -%}{%- set rest = messages -%}{%- endif -%}"
    "{%- for message in rest -%}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{- raise_exception('roles must alternate') -}}{%- endif -%}"
    "{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' -}}"
    "{%- if loop.first -%}{{- before -}}{%- endif -%}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- '<start_of_image>' -}}"
    "{%- else -%}{{- part.text | trim -}}{%- endif -%}{%- endfor -%}{{- '<end_of_turn>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"
)
"""A template of the kind of Gemma: strict roles, stripped texts, the system text in the user's."""

SMOL = (
    "{{- '<|im_start|>' -}}{%- for message in messages -%}{{- message.role | capitalize -}}"
    "{{- ':' if message.content[0].type == 'image' else ': ' -}}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- '<image>' -}}"
    "{%- else -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{{- '<end_of_utterance>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"
)
"""A template of the kind of Idefics3: a prompt lacks the blank with which a turn begins."""

SIZES: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 2048,
}  # fmt: skip


def byte_level(control: Sequence[str], named: Mapping[str, str]) -> Any:
    """Return a byte-level tokenizer with these control tokens, some of which have names."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=260, initial_alphabet=alphabet, show_progress=False)
    built.train_from_iterator(["hello"], trainer)
    return _named(built, control, named)


def _named(built: Tokenizer, control: Sequence[str], named: Mapping[str, str]) -> Any:
    fast = t.PreTrainedTokenizerFast(
        tokenizer_object=built, eos_token="</s>", pad_token="</s>", extra_special_tokens=dict(named)
    )
    fast.add_tokens([t.AddedToken(text, special=True, normalized=False) for text in control])
    return fast


def text_config(kind: Any, rows: int, **others: Any) -> Any:
    """Return the configuration of a tiny language model."""
    return kind(**{**SIZES, "vocab_size": rows, "tie_word_embeddings": False, **others})


def _rows(tokenizer: Any) -> int:
    return -(-len(tokenizer) // 32) * 32


def llava_onevision() -> tuple[Any, Any]:
    """Return processor and configuration: a grid of tiles with new lines, no token types."""
    control = ("<|im_start|>", "<|im_end|>", "<image>", "<video>")
    tokenizer = byte_level(control, {"image_token": "<image>", "video_token": "<video>"})
    images = t.LlavaOnevisionImageProcessor(
        size={"height": 28, "width": 28}, image_grid_pinpoints=[[28, 56], [56, 28], [56, 56]]
    )
    processor = t.LlavaOnevisionProcessor(
        images, tokenizer, t.LlavaOnevisionVideoProcessor(), num_image_tokens=4,
        vision_feature_select_strategy="full", chat_template=CHATML.replace("IMAGE", "<image>"),
    )  # fmt: skip
    config = t.LlavaOnevisionConfig(
        vision_config=t.SiglipVisionConfig(**_vision(28)),
        text_config=text_config(t.Qwen2Config, _rows(tokenizer)),
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
    vision = t.InternVLVisionConfig(
        **{**_vision(28), "image_size": [28, 28], "patch_size": [14, 14]}
    )
    config = t.InternVLConfig(
        vision_config=vision,
        text_config=text_config(t.Qwen2Config, _rows(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=1,
    )
    return processor, config


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
    text = text_config(t.Gemma3TextConfig, _rows(tokenizer), layer_types=layers, sliding_window=16)
    config = t.Gemma3Config(
        vision_config=t.SiglipVisionConfig(**_vision(56)),
        text_config=text,
        mm_tokens_per_image=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
        boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
    )
    return processor, config


def idefics3() -> tuple[Any, Any]:
    """Return processor and configuration: tiles with names of rows and columns, and a thumbnail."""
    tiles = tuple(f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5))
    control = ("<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>")
    tokenizer = byte_level((*control, "<global-img>", *tiles), {"image_token": "<image>"})
    images = t.Idefics3ImageProcessor(
        size={"longest_edge": 112}, max_image_size={"longest_edge": 56}, do_image_splitting=True
    )
    processor = t.Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=SMOL)
    config = t.Idefics3Config(
        vision_config=t.Idefics3VisionConfig(**_vision(56)),
        text_config=text_config(t.LlamaConfig, _rows(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    return processor, config


FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "llava_onevision": llava_onevision,
    "internvl": internvl,
    "gemma3": gemma3,
    "idefics3": idefics3,
}


def _vision(side: int) -> dict[str, Any]:
    return {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "image_size": side, "patch_size": 14,
    }  # fmt: skip


def build(name: str, folder: Path) -> Path:
    """Write a checkpoint of a family, and return its folder."""
    processor, config = FAMILIES[name]()
    text = config.text_config
    for part in (config, text):
        part.pad_token_id = processor.tokenizer.pad_token_id
        part.eos_token_id, part.bos_token_id = processor.tokenizer.eos_token_id, None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: Any = t.AutoModelForImageTextToText.from_config(config)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(0, 0.15)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
