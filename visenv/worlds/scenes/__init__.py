"""A procedural world of signs in cluttered scenes, each with a detail only a zoom can read."""

from visenv.worlds.scenes.details import KINDS, DetailKind
from visenv.worlds.scenes.presets import PRESETS, ScenePreset
from visenv.worlds.scenes.truth import SceneTruth, SignTruth
from visenv.worlds.scenes.world import ScenesWorld

__all__ = [
    "KINDS",
    "PRESETS",
    "DetailKind",
    "ScenePreset",
    "SceneTruth",
    "ScenesWorld",
    "SignTruth",
]
