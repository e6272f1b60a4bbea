"""Connects visenv to TRL: to its trainer with episodes, or to its own loop with tools."""

from .factory import environment_factory, native_reward
from .formats import rows, to_trl
from .trainer import VisenvGRPOTrainer, environment_reward

__all__ = [
    "VisenvGRPOTrainer",
    "environment_factory",
    "environment_reward",
    "native_reward",
    "rows",
    "to_trl",
]
