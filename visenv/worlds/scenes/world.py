"""Generates any number of scenes, each with one question and exact ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from visenv.presets import changed_preset
from visenv.types import Image, Pixels, Sample
from visenv.worlds.draws import drawn_scene, pick
from visenv.worlds.recent import RECENT
from visenv.worlds.scenes.background import add_grain
from visenv.worlds.scenes.details import KINDS, PANEL, Canvas, engrave
from visenv.worlds.scenes.presets import PRESETS, ScenePreset
from visenv.worlds.scenes.signs import Box, Sign, draw_plate, draw_post
from visenv.worlds.scenes.styles import STYLES
from visenv.worlds.scenes.truth import SceneTruth, SignTruth

_PLACES_TRIED = 60

SIZES = ((3072, 2304), (2304, 3072), (3072, 3072), (3840, 2160), (4096, 3072))
"""``(width, height)`` of varied scenes in pixels, at least three times a view of 1024 pixels."""

PLACES = ("landscape", "bricks", "night", "shelves")
"""Styles of varied scenes, keys of `visenv.worlds.scenes.styles.STYLES`."""

VARIED = "default"
"""The preset of scenes that is varied; others have fixed sizes."""

_FIXED = ("width", "height", "view_side", "style")


class _Marked(NamedTuple):
    """Holds a sign and the answer written on it."""

    sign: Sign
    answer: str


class ScenesWorld:
    """Generates scenes whose decisive detail is illegible in the view, but legible after one zoom.

    A `ProceduralSource`. Every scene has one or more signs in clutter, and the question is about
    one of them. The view is the scene averaged down to `ScenePreset.view_side`. It is the same for
    all answers (`visenv.worlds.scenes.details.hide`).

    `Sample.ground_truth` is a `SceneTruth`; `Sample.kind` is the kind of detail.

    Args:
        preset: A key of `PRESETS`.
        **overrides: Fields of `ScenePreset` to change, for example ``difficulty=0.9``.

    Raises:
        UnknownNameError: If there is no such preset or field.
        ConfigurationError: If a value is out of its range.
    """

    ground_truth: ClassVar[type] = SceneTruth

    def __init__(self, preset: str = "default", **overrides: Any) -> None:
        self.preset = changed_preset(
            PRESETS, preset, overrides, "preset of scenes", "field of a scenes preset"
        )

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return a scene, which depends only on the generator's state.

        Recent scenes are cached, so that the members of a group share one.
        """
        return RECENT.sample(self.preset, rng, self._make)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Return a scene whose signs are placed as in no scene of `sample`."""
        return RECENT.sample((self.preset, "held out"), rng, self._make_held_out)

    def _make_held_out(self, rng: np.random.Generator) -> Sample:
        return self._make(rng, held_out=True)

    def _make(self, rng: np.random.Generator, held_out: bool = False) -> Sample:
        identity = f"scene-{int(rng.integers(2**63)):016x}"
        kind, signs = drawn_scene(lambda: self._draw(rng), held_out, key=_layout)
        asked = signs[0]
        name = asked.sign.name if len(signs) > 1 else "the sign"
        return Sample(
            id=identity,
            question=KINDS[kind].question.format(sign=name),
            images=(Image.from_pixels(self._paint(rng, kind, signs)),),
            answers=(asked.answer,),
            kind=kind,
            ground_truth=self._truth(kind, signs),
        )

    def _draw(self, rng: np.random.Generator) -> tuple[str, list[_Marked]]:
        """Draw the kind of the details, and the signs with their answers."""
        kind = str(rng.choice(self.preset.kinds))
        options = KINDS[kind].options
        return kind, [_Marked(sign, str(rng.choice(options))) for sign in self._place(rng)]

    def _place(self, rng: np.random.Generator) -> list[Sign]:
        """Place signs of different frames or shapes without overlap, fewer if there is no room."""
        preset = self.preset
        looks = [(frame, shape) for frame in preset.frames for shape in preset.shapes]
        order = rng.permutation(len(looks))[: round(preset.at(preset.signs))]
        signs: list[Sign] = []
        for look in order:
            sign = self._place_one(rng, looks[int(look)], signs)
            if sign is not None:
                signs.append(sign)
        return signs

    def _place_one(
        self, rng: np.random.Generator, look: tuple[str, str], others: list[Sign]
    ) -> Sign | None:
        preset = self.preset
        frame, shape = look
        grid = preset.unit.denominator
        detail, side = preset.detail_side, preset.sign_side(shape)
        margin = (side - detail) // 2
        rows, columns = (
            int(native / preset.unit - side) // grid + 1 for native in (preset.height, preset.width)
        )
        for _ in range(_PLACES_TRIED):
            left, top = int(rng.integers(columns)) * grid, int(rng.integers(rows)) * grid
            box = Box(left, top, left + side, top + side)
            if not any(_touch(box, other.box) for other in others):
                inner = left + margin, top + margin
                return Sign(frame, shape, box, Box(*inner, inner[0] + detail, inner[1] + detail))
        return None

    def _paint(self, rng: np.random.Generator, kind: str, signs: list[_Marked]) -> Pixels:
        preset = self.preset
        clutter = preset.at(preset.clutter)
        pixels = STYLES[preset.style](rng, preset.width, preset.height, clutter)
        if preset.posts:
            for sign, _ in signs:
                length = int(rng.integers(1, 4)) * (sign.box.bottom - sign.box.top)
                draw_post(pixels, sign, preset.unit, length)
        for sign, answer in signs:
            draw_plate(pixels, sign, preset.frame, preset.unit, PANEL)
            self._engrave(rng, pixels, sign, kind, answer)
        add_grain(rng, pixels, preset.grain)
        return pixels

    def _engrave(
        self, rng: np.random.Generator, pixels: Pixels, sign: Sign, kind: str, answer: str
    ) -> None:
        preset = self.preset
        left, top, right, bottom = sign.panel.native(preset.unit)
        canvas = Canvas(right - left, preset.unit, preset.stripe_period)
        ink = KINDS[kind].draw(rng, answer, canvas)
        contrast = preset.at(preset.contrast)
        pixels[top:bottom, left:right] = engrave(rng, ink, preset.unit, contrast)

    def _truth(self, kind: str, signs: list[_Marked]) -> SceneTruth:
        unit = self.preset.unit
        listed = tuple(
            SignTruth(
                name=sign.name,
                frame=sign.frame,
                shape=sign.shape,
                answer=answer,
                box=sign.box.native(unit),
                detail_box=sign.panel.native(unit),
            )
            for sign, answer in signs
        )
        return SceneTruth(
            options=KINDS[kind].options,
            target_box=listed[0].box,
            detail_box=listed[0].detail_box,
            signs=listed,
        )


def _layout(drawn: tuple[str, list[_Marked]]) -> list[tuple[Any, ...]]:
    """Return the looks and places of all signs, whichever of them the question is about."""
    return sorted((sign.frame, sign.shape, *sign.box) for sign, _ in drawn[1])


def _touch(one: Box, other: Box) -> bool:
    return (
        one.left < other.right
        and other.left < one.right
        and one.top < other.bottom
        and other.top < one.bottom
    )


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
