"""Builds tiny checkpoints of real architectures that are not packed, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as t

from .tiny_families import gemma, grids, tiles

FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "llava_onevision": tiles.llava_onevision,
    "internvl": tiles.internvl,
    "gemma3": gemma.gemma3,
    "idefics3": tiles.idefics3,
    "qwen3_5": grids.qwen3_5,
    "mistral3": tiles.mistral3,
    "gemma4": gemma.gemma4,
    "glm46v": grids.glm46v,
    "lfm2_vl": tiles.lfm2_vl,
    "qwen2_vl": grids.qwen2_vl,
    "qwen3_vl_moe": grids.qwen3_vl_moe,
    "qwen3_5_moe": grids.qwen3_5_moe,
    "smolvlm": tiles.smolvlm,
}
"""Functions that return the processor and the configuration of a family, by the type of model."""

IN_VLLM = ("idefics3", "internvl", "mistral3", "smolvlm")
"""The families whose samples are tested with vLLM's CPU build."""


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
