"""The trainer: any trainable policy, any environment, any algorithm."""

from .config import Optimisation, Rollouts, Saving, TrainerConfig
from .curriculum import Curriculum, Stage
from .supply import Selection
from .trainer import Trainer

__all__ = [
    "Curriculum",
    "Optimisation",
    "Rollouts",
    "Saving",
    "Selection",
    "Stage",
    "Trainer",
    "TrainerConfig",
]
