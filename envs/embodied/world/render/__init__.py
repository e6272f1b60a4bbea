"""Frames of a house, drawn with MuJoCo."""

from .renderer import HouseRenderer

__all__ = ["HouseRenderer"]
