"""Defines presets of scenes: sizes, number of signs, clutter, and ranges of difficulty."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.worlds.scenes.details import GRAIN_ROOM, KINDS
from visenv.worlds.scenes.signs import FRAMES, SHAPES, outer_side
from visenv.worlds.scenes.styles import STYLES

Span = tuple[float, float]
"""Values of a quantity at difficulty 0 and at difficulty 1."""


@dataclass(frozen=True, slots=True)
class ScenePreset:
    """Describes a set of scenes. Lengths in "view px" are pixels of the image that the model sees.

    Attributes:
        width: Native width, pixels.
        height: Native height, pixels.
        view_side: Long side of the view, pixels; both sides must shrink by the same ratio.
        kinds: Kinds of detail in questions, keys of `KINDS`, drawn uniformly.
        difficulty: 0 (easiest) to 1 (hardest); interpolates every span below.
        detail: Side of the area that holds the detail, view px.
        frame: Width of a sign's colored frame, view px.
        signs: Number of signs, with the sign of the question.
        contrast: Contrast of the detail, 0 to 1.
        clutter: Clutter of the background, 0 to 1.
        stripe_period: Distance between two stripes of the kind ``"colour"``, view px.
        grain: Amplitude of sensor noise, levels of 255; at most 9, so that no detail is clipped.
        frames: Colors a sign's frame may have, keys of `FRAMES`.
        shapes: Shapes a sign may have, keys of `SHAPES`.
        posts: Whether signs stand on posts.
        style: Background of the signs, a key of `STYLES`.

    Raises:
        ConfigurationError: If a value is out of its range.
    """

    width: int
    height: int
    view_side: int
    kinds: tuple[str, ...] = tuple(KINDS)
    difficulty: float = 0.5
    detail: Span = (56, 32)
    frame: int = 5
    signs: Span = (2, 6)
    contrast: Span = (1.0, 0.7)
    clutter: Span = (0.3, 1.0)
    stripe_period: int = 3
    grain: int = 6
    frames: tuple[str, ...] = tuple(FRAMES)
    shapes: tuple[str, ...] = tuple(SHAPES)
    posts: bool = True
    style: str = "landscape"

    def __post_init__(self) -> None:
        self._check_names()
        self._check_size()
        if not 0 <= self.difficulty <= 1:
            raise ConfigurationError(f"difficulty must be 0 to 1, got {self.difficulty!r}.")
        if not 0 <= self.grain <= GRAIN_ROOM:
            raise ConfigurationError(f"grain must be 0 to {GRAIN_ROOM}, got {self.grain!r}.")
        if min(self.signs) < 1:
            raise ConfigurationError(f"A scene needs at least 1 sign, got {self.signs}.")
        side = max(self.sign_side(shape) for shape in self.shapes)
        if side > min(self.width, self.height) / self.unit:
            raise ConfigurationError(
                f"A sign of {side} view px does not fit a view of "
                f"{self.width / self.unit} x {self.height / self.unit}."
            )

    def _check_size(self) -> None:
        size = f"{self.width}x{self.height}"
        if min(self.width, self.height, self.view_side) < 16:
            raise ConfigurationError(f"{size} or its view is too small: at least 16 pixels a side.")
        if max(self.width, self.height) < self.view_side:
            raise ConfigurationError(f"view_side={self.view_side} exceeds the native size {size}.")
        if min(self.width, self.height) % self.unit.numerator:
            raise ConfigurationError(
                f"{size} does not shrink evenly to a view of {self.view_side}: both sides must be "
                f"multiples of {self.unit.numerator}."
            )

    def _check_names(self) -> None:
        named = (("kind", self.kinds, KINDS), ("frame", self.frames, FRAMES))
        for what, given, known in (*named, ("shape", self.shapes, SHAPES)):
            if not given:
                raise ConfigurationError(f"Name at least one {what}.")
            for name in given:
                if name not in known:
                    raise UnknownNameError(what, name, known)
        if self.style not in STYLES:
            raise UnknownNameError("style of scenes", self.style, STYLES)
        if max(self.signs) > len(self.frames) * len(self.shapes):
            raise ConfigurationError(
                f"{max(self.signs)} signs cannot all differ with {len(self.frames)} frames "
                f"and {len(self.shapes)} shapes."
            )

    @property
    def unit(self) -> Fraction:
        """Return the native pixels per view pixel."""
        return Fraction(max(self.width, self.height), self.view_side)

    @property
    def detail_side(self) -> int:
        """Return the side of the detail in view pixels, as a whole number of native pixels."""
        grid = self.unit.denominator
        return max(1, round(self.at(self.detail) / grid)) * grid

    def sign_side(self, shape: str) -> int:
        """Return the side of a sign of that shape at this difficulty, view px."""
        return outer_side(shape, self.detail_side, self.frame, self.unit.denominator)

    def at(self, span: Span) -> float:
        """Return the value of a span at this difficulty."""
        return span[0] + (span[1] - span[0]) * self.difficulty


PRESETS = {
    "default": ScenePreset(3072, 2304, 1024),
    "small": ScenePreset(1024, 1024, 256, detail=(36, 24), frame=2, signs=(1, 4)),
    "4k": ScenePreset(3840, 2160, 1024),
    "8k": ScenePreset(7680, 4320, 1024),
    # The main job: one sign, always with the same frame, on a plain ground, in a view of few
    # patches.
    "tiny": ScenePreset(
        1152,
        1152,
        96,
        kinds=("colour",),
        detail=(12, 12),
        frame=3,
        signs=(1, 1),
        contrast=(1, 1),
        clutter=(0, 0),
        stripe_period=1,
        grain=8,
        frames=("orange",),
        shapes=("square",),
        posts=False,
    ),
}
