"""Creates an unlimited number of short videos with one question each."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import numpy as np

from visenv.presets import check_choice
from visenv.types import Image, Sample
from visenv.worlds.draws import pick
from visenv.worlds.recent import RECENT

from ..ground_truth import GroundedTruth
from .common import choose_tint
from .draw import draw_ground, paint
from .images import world_preset
from .plots import PLOTS, Plot
from .presets import VIDEOS, Split
from .things import FrameSize, Thing


class VideoWorld:
    """Creates videos in which things move, enter, leave, hide, meet and change.

    This is a `ProceduralSource`. The images of a sample are the frames; `Sample.ground_truth` is a
    `GroundedTruth` with exact intervals of the events, those of the question first.

    Args:
        preset: A key of `VIDEOS`.
        split: ``"train"`` or ``"ood"``, see `ImageWorld`.
        **overrides: Fields of `WorldPreset` to change.

    Raises:
        UnknownNameError: If there is no such preset, split, kind or field.
        ConfigurationError: If `kinds` is empty.
    """

    ground_truth: ClassVar[type] = GroundedTruth
    world_version: ClassVar[int] = 3

    def __init__(self, preset: str = "default", split: Split = "ood", **overrides: Any) -> None:
        self.preset = world_preset(VIDEOS, preset, PLOTS, overrides)
        check_choice("split", split, get_args(Split))
        self.split: Split = split

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a video, which depends only on the state of the generator."""
        return RECENT.sample(("argos video", self.preset, self.split), rng, self._make)

    def _make(self, rng: np.random.Generator) -> Sample:
        preset = self.preset
        identity = f"video-{int(rng.integers(2**63)):016x}"
        kind = pick(rng, preset.kinds)
        frames = int(rng.integers(preset.frames[0], preset.frames[1] + 1))
        plot = PLOTS[kind](rng, preset, frames)
        tint, shortcut = choose_tint(rng, plot.answer, plot.options, self.split)
        extent = FrameSize(preset.width, preset.height)
        ground = draw_ground(rng, preset, tint)
        scenes = tuple(scene_of(plot, frame) for frame in range(frames))
        others = [event for event in plot.events if event not in plot.key_events]
        return Sample(
            id=identity,
            question=plot.question,
            images=tuple(Image.from_pixels(paint(each, extent, ground, rng)) for each in scenes),
            answers=(plot.answer,),
            kind=kind,
            ground_truth=GroundedTruth(
                options=plot.options,
                times=tuple(round(preset.step * frame, 2) for frame in range(frames)),
                width=preset.width,
                height=preset.height,
                frames=scenes,
                targets=plot.targets,
                events=(*plot.key_events, *others),
                key_events=len(plot.key_events),
                asked=plot.asked,
                shortcut=shortcut,
            ),
        )


def scene_of(plot: Plot, frame: int) -> tuple[Thing, ...]:
    """Return the things of a frame from back to front; those behind the wall come first."""
    behind = [actor.at(frame) for actor in plot.actors if frame in actor.behind]
    before = [actor.at(frame) for actor in plot.actors if frame not in actor.behind]
    wall = [plot.wall] if plot.wall else []
    return (*behind, *wall, *before)
