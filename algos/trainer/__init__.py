"""Trains any trainable policy in any environment with any algorithm."""

from .config import OptimizationConfig, RolloutConfig, SavingConfig, TrainerConfig
from .episode_sources import SelectionConfig
from .evaluation import HeldOut
from .observers import Callback, TrainerState
from .trainer import Trainer

__all__ = [
    "Callback",
    "HeldOut",
    "OptimizationConfig",
    "RolloutConfig",
    "SavingConfig",
    "SelectionConfig",
    "Trainer",
    "TrainerConfig",
    "TrainerState",
]
