"""Creates the procedural scenes, with several signs that only a magnifier makes readable."""

from .presets import SCENES, SceneDifficulty
from .world import MagsWorld

__all__ = ["SCENES", "MagsWorld", "SceneDifficulty"]
