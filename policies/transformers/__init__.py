"""Runs a vision-language model with transformers: sampling, scoring, training."""

from ..tokens.session import TokenSession
from .lora import LoraSettings
from .policy import TransformersPolicy
from .tiny import TinyConfig, build_tiny

__all__ = ["LoraSettings", "TinyConfig", "TokenSession", "TransformersPolicy", "build_tiny"]
