"""The trainer: any trainable policy, any environment, any algorithm."""

from .config import Optimisation, Rollouts, Saving, TrainerConfig
from .trainer import Trainer

__all__ = ["Optimisation", "Rollouts", "Saving", "Trainer", "TrainerConfig"]
