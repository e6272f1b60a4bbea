"""A vision-language model run by transformers: samples, scores, trains."""

from visenv.policies.transformers.policy import TransformersPolicy
from visenv.policies.transformers.session import TokenSession
from visenv.policies.transformers.tiny import TinyConfig, build_tiny

__all__ = ["TinyConfig", "TokenSession", "TransformersPolicy", "build_tiny"]
