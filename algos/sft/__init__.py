"""Implements supervised fine-tuning (SFT) on the turns of given episodes."""

from .algorithm import SFT
from .demonstrations import play_demonstrations

__all__ = ["SFT", "play_demonstrations"]
