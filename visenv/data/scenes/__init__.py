"""A procedural world of signs in cluttered scenes, each with a detail only a zoom can read."""

from visenv.data.scenes.details import KINDS, Kind
from visenv.data.scenes.presets import PRESETS, Preset
from visenv.data.scenes.world import ScenesWorld

__all__ = ["KINDS", "PRESETS", "Kind", "Preset", "ScenesWorld"]
