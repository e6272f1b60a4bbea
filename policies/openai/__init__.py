"""Provides `OpenAIPolicy`: a model behind any OpenAI-compatible server."""

from .policy import OpenAIPolicy

__all__ = ["OpenAIPolicy"]
