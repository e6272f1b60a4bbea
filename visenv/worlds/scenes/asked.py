"""Creates scenes of several styles and sizes with plain questions in several wordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from visenv.types import Sample
from visenv.worlds.draws import pick
from visenv.worlds.scenes.references import refer
from visenv.worlds.scenes.truth import SceneTruth
from visenv.worlds.scenes.varied import PLACES, VARIED, VariedScenes
from visenv.worlds.scenes.wordings import QUESTIONS


class AskedScenes:
    """Creates scenes of `VariedScenes` with their questions, in several wordings.

    This is a `ProceduralSource`. The preset ``"default"`` uses several wordings, and refers to a
    sign by its look, its position or another sign (`refer`); other presets ask as `ScenesWorld`
    does. `Sample.kind` is the kind of detail; `Sample.ground_truth` is a `SceneTruth`.

    Args:
        preset: A preset of scenes.
        **overrides: Fields of the preset to change.

    Raises:
        UnknownNameError: If there is no such preset or field.
        ConfigurationError: If a value is out of its range.
    """

    ground_truth = SceneTruth
    styles: ClassVar[Sequence[str]] = PLACES
    """The styles of varied scenes; subclasses may have others."""

    def __init__(self, preset: str = VARIED, **overrides: Any) -> None:
        self.world = VariedScenes(preset, self.styles, **overrides)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a scene with its question, which depends only on the state of the generator."""
        return self._asked(rng, self.world.sample(rng))

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a scene that `sample` never creates, with its question."""
        return self._asked(rng, self.world.sample_held_out(rng))

    def _asked(self, rng: np.random.Generator, scene: Sample) -> Sample:
        _, question = asked(rng, scene, self.world.is_varied)
        return replace(scene, question=question)


def asked(rng: np.random.Generator, scene: Sample, is_varied: bool) -> tuple[str, str]:
    """Return a phrase for the sign that a scene is about, and the question about it.

    Args:
        rng: Draws the phrase and the wording for a varied scene.
        scene: A scene of `VariedScenes`.
        is_varied: Whether to use several phrases and wordings; otherwise those of the scene.
    """
    signs = scene.truth_as(SceneTruth).signs
    if not is_varied:
        return (signs[0].name if len(signs) > 1 else "the sign"), scene.question
    sign = refer(rng, signs)
    return sign, pick(rng, QUESTIONS[scene.kind]).format(sign=sign)
