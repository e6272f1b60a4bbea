"""Renders frames of a house with MuJoCo."""

from .renderer import HouseRenderer

__all__ = ["HouseRenderer"]
