"""A vision-language model run by transformers: samples, scores, trains."""

from .policy import TransformersPolicy
from .session import TokenSession
from .tiny import TinyConfig, build_tiny

__all__ = ["TinyConfig", "TokenSession", "TransformersPolicy", "build_tiny"]
