"""Samples with vLLM in a training run: in this process, or behind a server."""

from .policy import VLLMPolicy
from .server import VLLMServer
from .server_policy import VLLMServerPolicy

__all__ = ["VLLMPolicy", "VLLMServer", "VLLMServerPolicy"]
