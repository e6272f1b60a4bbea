"""Contains the steps that create the training and evaluation data (§4.1, appendix C)."""

from .rating import DropUnclear, RateZoom
from .selection import MagsTrain, Stratify

__all__ = ["DropUnclear", "MagsTrain", "RateZoom", "Stratify"]
