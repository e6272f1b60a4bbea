"""Supervised fine-tuning: learning to say what a given episode says."""

from .algorithm import SFT

__all__ = ["SFT"]
