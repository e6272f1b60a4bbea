"""Steps that make the training and evaluation data of the paper (§4.1, appendix C)."""

from .rating import Clear, ZoomScore
from .selection import MagsTrain, Stratify

__all__ = ["Clear", "MagsTrain", "Stratify", "ZoomScore"]
