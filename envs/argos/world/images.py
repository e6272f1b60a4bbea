"""Creates an unlimited number of scenes, charts and maps with one question each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np

from visenv.errors import ConfigurationError
from visenv.presets import changed_preset, check_choice
from visenv.types import Image, Sample
from visenv.worlds.draws import drawn_scene, pick
from visenv.worlds.recent import RECENT

from ..ground_truth import GroundedTruth
from .common import choose_tint
from .draw import draw_ground, paint
from .presets import IMAGES, Split, WorldPreset
from .questions import QUESTIONS
from .things import FrameSize


class ImageWorld:
    """Creates scenes of textured things that may cover each other, with exact masks.

    This is a `ProceduralSource`. `Sample.ground_truth` is a `GroundedTruth`; `Sample.kind` is the
    kind of question.

    Args:
        preset: A key of `IMAGES`.
        split: ``"train"``, where the tint of the background reveals the answer in 90 % of the
            scenes, or ``"ood"``, where it never does.
        **overrides: Fields of `WorldPreset` to change.

    Raises:
        UnknownNameError: If there is no such preset, split, kind or field.
        ConfigurationError: If `kinds` is empty.
    """

    ground_truth: ClassVar[type] = GroundedTruth
    world_version: ClassVar[int] = 3

    def __init__(self, preset: str = "default", split: Split = "ood", **overrides: Any) -> None:
        self.preset = world_preset(IMAGES, preset, QUESTIONS, overrides)
        check_choice("split", split, get_args(Split))
        self.split: Split = split

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a scene, which depends only on the state of the generator."""
        return RECENT.sample(("argos image", self.preset, self.split), rng, self._make)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a scene that `sample` never creates."""
        maker = ("held-out argos image", self.preset, self.split)
        return RECENT.sample(maker, rng, partial(self._make, held_out=True))

    def _make(self, rng: np.random.Generator, held_out: bool = False) -> Sample:
        preset = self.preset
        identity = f"image-{int(rng.integers(2**63)):016x}"
        kind = pick(rng, preset.kinds)
        asked = drawn_scene(
            lambda: QUESTIONS[kind](rng, preset),
            held_out,
            key=lambda scene: sorted(map(repr, scene.things)),
            answer=lambda scene: scene.answer,
        )
        tint, shortcut = choose_tint(rng, asked.answer, asked.options, self.split)
        ground = draw_ground(rng, preset, tint, is_sheet=kind in ("chart", "map"))
        pixels = paint(asked.things, FrameSize(preset.width, preset.height), ground, rng)
        return Sample(
            id=identity,
            question=asked.question,
            images=(Image.from_pixels(pixels),),
            answers=(asked.answer,),
            kind=kind,
            ground_truth=GroundedTruth(
                options=asked.options,
                width=preset.width,
                height=preset.height,
                frames=(asked.things,),
                targets=asked.targets,
                asked=asked.asked,
                counted=asked.counted,
                shortcut=shortcut,
            ),
        )


def world_preset(
    presets: dict[str, WorldPreset], name: str, kinds: Any, overrides: dict[str, Any]
) -> WorldPreset:
    """Return a preset with some fields changed.

    Raises:
        UnknownNameError: If there is no such preset, field or kind.
        ConfigurationError: If `kinds` is empty.
    """
    preset = changed_preset(
        presets, name, overrides, "preset of a world", "field of a world preset"
    )
    preset = replace(preset, kinds=tuple(preset.kinds))
    if not preset.kinds:
        raise ConfigurationError(
            "kinds must contain at least one kind of question, got none. Known: "
            f"{', '.join(kinds)}."
        )
    for kind in preset.kinds:
        check_choice("kind of question", kind, kinds)
    return preset
