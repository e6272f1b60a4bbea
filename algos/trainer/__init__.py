"""The trainer: any trainable policy, any environment, any algorithm."""

from .callbacks import Callback, TrainerState
from .config import Optimisation, Rollouts, Saving, TrainerConfig
from .evaluation import HeldOut
from .supply import Selection
from .trainer import Trainer

__all__ = [
    "Callback",
    "HeldOut",
    "Optimisation",
    "Rollouts",
    "Saving",
    "Selection",
    "Trainer",
    "TrainerConfig",
    "TrainerState",
]
