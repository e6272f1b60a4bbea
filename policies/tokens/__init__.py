"""Converts between messages and tokens, for all engines."""

import os

import torch

if not torch.accelerator.is_available():
    # If DeepSpeed is installed, transformers imports it, and it prints that it found no GPU.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")

from .codec import Codec
from .session import TokenSession, TokenStream

__all__ = ["Codec", "TokenSession", "TokenStream"]
