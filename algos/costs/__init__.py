"""Estimates the tokens, FLOPs and bytes of a training step from the sizes of model and episodes."""

from .memory import activation_bytes, exchanged_bytes, state_bytes
from .model import QWEN2_5_VL, ModelSize
from .work import StepWork, read_flops, update_flops

__all__ = [
    "QWEN2_5_VL",
    "ModelSize",
    "StepWork",
    "activation_bytes",
    "exchanged_bytes",
    "read_flops",
    "state_bytes",
    "update_flops",
]
