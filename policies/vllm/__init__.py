"""Samples with vLLM in a training run: in this process, or behind a server.

Every public name is loaded when it is first used, so that the program of the server (`serve`)
starts without PyTorch and transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .policy import VLLMPolicy
    from .server import VLLMServer
    from .server_policy import VLLMServerPolicy

_MODULES = {"VLLMPolicy": "policy", "VLLMServer": "server", "VLLMServerPolicy": "server_policy"}

__all__ = ["VLLMPolicy", "VLLMServer", "VLLMServerPolicy"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
