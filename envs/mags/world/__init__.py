"""The procedural world of the family: scenes with several signs that only a magnifier can read."""

from .presets import SCENES, SceneDifficulty
from .world import MagsWorld

__all__ = ["SCENES", "MagsWorld", "SceneDifficulty"]
