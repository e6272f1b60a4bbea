"""Runs a vision-language model with transformers: sampling, scoring, training."""

from ..tokens.session import TokenSession
from .lora import LoraSettings
from .policy import TransformersPolicy
from .tiny import TinyConfig, build_tiny
from .tiny_tokenizer import TokenizerTexts, collect_texts

__all__ = [
    "LoraSettings",
    "TinyConfig",
    "TokenSession",
    "TokenizerTexts",
    "TransformersPolicy",
    "build_tiny",
    "collect_texts",
]
