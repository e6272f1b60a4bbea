"""Creates an unlimited number of scenes with several signs and one question each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from visenv.presets import changed_preset
from visenv.types import Image, Pixels, Sample
from visenv.worlds.draws import drawn_scene
from visenv.worlds.recent import RECENT
from visenv.worlds.scenes import SignTruth

from ..ground_truth import MagsTruth
from .presets import SCENES
from .questions import SceneDraft, make_scene
from .render import native_image, paint


class MagsWorld:
    """Creates scenes whose signs cannot be read in the view, and questions about them.

    This is a `ProceduralSource`. Each scene is rendered at four times its native resolution and
    averaged down, so that the true high-resolution pixels of every crop are known (`pair`).

    `Sample.ground_truth` is a `MagsTruth`; `Sample.kind` is ``"counting"``, ``"relation"`` or
    ``"attribute"``.

    Args:
        scenes: A key of `SCENES`.
        **overrides: Fields of `SceneDifficulty` to change, for example ``kinds=("counting",)``.

    Raises:
        UnknownNameError: If there is no such difficulty or field.
        ConfigurationError: If a value is out of its range.
    """

    ground_truth: ClassVar[type] = MagsTruth

    def __init__(self, scenes: str = "simple", **overrides: Any) -> None:
        self.scenes = changed_preset(
            SCENES, scenes, overrides, "difficulty of scenes", "field of scenes"
        )

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a scene, which depends only on the state of the generator.

        Recent scenes are cached, so that the members of a group share one.
        """
        return RECENT.sample(self.scenes, rng, lambda rng: self.pair(rng)[0])

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a scene whose signs are placed as in no scene of `sample`."""
        maker = (self.scenes, "held out")
        return RECENT.sample(maker, rng, lambda rng: self.pair(rng, held_out=True)[0])

    def pair(self, rng: np.random.Generator, held_out: bool = False) -> tuple[Sample, Pixels]:
        """Create a scene; return it with its rendered pixels.

        Args:
            rng: Draws the scene.
            held_out: Whether the scene must be held out from training.

        Returns:
            The sample, whose image has the native size, and uint8
            ``[4 * side, 4 * side, 3]`` at four times the native resolution.
        """
        identity = f"mags-{int(rng.integers(2**63)):016x}"
        scene = drawn_scene(lambda: make_scene(rng, self.scenes), held_out, key=_layout)
        rendered = paint(rng, self.scenes, scene)
        sample = Sample(
            id=identity,
            question=scene.question,
            images=(Image.from_pixels(native_image(rng, self.scenes, rendered)),),
            answers=(scene.answer,),
            kind=scene.kind,
            ground_truth=self._truth(scene),
        )
        return sample, rendered

    def _truth(self, scene: SceneDraft) -> MagsTruth:
        unit = self.scenes.unit
        boxes = [sign.box.native(unit) for sign in scene.signs]
        signs = tuple(
            SignTruth(
                name=sign.name,
                frame=sign.frame,
                shape=sign.shape,
                answer=value,
                box=box,
                detail_box=sign.panel.native(unit),
            )
            for sign, value, box in zip(scene.signs, scene.values, boxes, strict=True)
        )
        return MagsTruth(
            options=scene.options,
            target_boxes=tuple(boxes[place] for place in scene.targets),
            target_objects=tuple(signs[place].name for place in scene.targets),
            evidence_boxes=tuple(boxes[place] for place in scene.evidence),
            signs=signs,
        )


def _layout(scene: SceneDraft) -> list[tuple[Any, ...]]:
    """Return the looks and places of the signs, which do not depend on the answer."""
    return sorted((sign.frame, sign.shape, *sign.box) for sign in scene.signs)
