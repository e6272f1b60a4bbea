"""Between messages and tokens, whatever engine samples."""

import os

import torch

if not torch.accelerator.is_available():
    # transformers imports DeepSpeed where it is, which says on stdout that it found no GPU.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")

from .codec import Codec
from .session import TokenSession, TokenStream

__all__ = ["Codec", "TokenSession", "TokenStream"]
