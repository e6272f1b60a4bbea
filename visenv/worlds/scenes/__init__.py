"""Generates cluttered scenes with signs, whose details are legible only after a zoom."""

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
