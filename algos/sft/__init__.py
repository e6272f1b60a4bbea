"""Supervised fine-tuning: learning to say what a given episode says."""

from .algorithm import SFT
from .demonstrations import play_demonstrations
from .warm_up import WarmUp, fit_once

__all__ = ["SFT", "WarmUp", "fit_once", "play_demonstrations"]
