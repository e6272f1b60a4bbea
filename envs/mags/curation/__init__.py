"""Steps that make the training and evaluation data of the paper (§4.1, appendix C)."""

from .rating import DropUnclear, RateZoom
from .selection import MagsTrain, Stratify

__all__ = ["DropUnclear", "MagsTrain", "RateZoom", "Stratify"]
