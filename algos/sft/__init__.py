"""Supervised fine-tuning: learning to say what a given episode says."""

from .algorithm import SFT
from .demonstrations import play_demonstrations

__all__ = ["SFT", "play_demonstrations"]
