"""Creates scenes of several styles and sizes, for environments with questions about images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from visenv.types import Sample
from visenv.worlds.draws import pick
from visenv.worlds.scenes.presets import PRESETS, ScenePreset
from visenv.worlds.scenes.world import ScenesWorld

SIZES = ((3072, 2304), (2304, 3072), (3072, 3072), (3840, 2160), (4096, 3072))
"""``(width, height)`` of varied scenes in pixels, at least three times a view of 1024 pixels."""

PLACES = ("landscape", "bricks", "night", "shelves")
"""Styles of varied scenes, keys of `visenv.worlds.scenes.styles.STYLES`."""

VARIED = "default"
"""The preset of scenes that is varied; others have fixed sizes."""

_FIXED = ("width", "height", "view_side", "style")


class VariedScenes:
    """Creates scenes of `ScenesWorld` in styles and sizes that are drawn uniformly.

    Only the preset `VARIED` is varied, and only if no size, view or style is given.

    Args:
        preset: A preset of scenes.
        styles: The styles that are drawn.
        **overrides: Fields of the preset to change.

    Raises:
        UnknownNameError: If there is no such preset, style or field.
        ConfigurationError: If a value is out of its range.
    """

    def __init__(
        self, preset: str = VARIED, styles: Sequence[str] = PLACES, /, **overrides: Any
    ) -> None:
        self.is_varied = preset == VARIED and not any(name in overrides for name in _FIXED)
        looks: list[dict[str, Any]] = [{}]
        if self.is_varied:
            looks = [
                {"style": style, "width": width, "height": height}
                for style in styles
                for width, height in SIZES
            ]
        self.worlds = tuple(ScenesWorld(preset, **overrides, **look) for look in looks)

    @property
    def preset(self) -> ScenePreset:
        """Return the preset with its changes, for the first size and style."""
        return self.worlds[0].preset

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a scene, which depends only on the state of the generator."""
        return pick(rng, self.worlds).sample(rng)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a scene whose signs are placed as in no scene of `sample`."""
        return pick(rng, self.worlds).sample_held_out(rng)


def lacks_looks(preset: str) -> bool:
    """Return whether a preset of scenes has a single frame, or a single shape."""
    known = PRESETS.get(preset)
    return known is not None and min(len(known.frames), len(known.shapes)) < 2
