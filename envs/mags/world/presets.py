"""Defines sizes, numbers of signs and clutter of scenes, with a preset for each difficulty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.worlds.scenes import KINDS as HIDDEN_DETAILS
from visenv.worlds.scenes.background import MATERIALS
from visenv.worlds.scenes.signs import FRAMES, SHAPES, outer_side

from .degrade import Degradation
from .pictograms import PICTOGRAMS

DETAILS = {**HIDDEN_DETAILS, **PICTOGRAMS}
"""Kinds of details by name. Details of degraded scenes are not hidden from the view."""

KINDS = ("counting", "relation", "attribute")
"""Kinds of question, after TallyQA, VSR and GQA."""

OVERSAMPLING = 4
"""Factor between the resolution at which scenes are rendered and the native resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneDifficulty:
    """Describes one difficulty. Lengths in "view px" are pixels of the image as the model sees it.

    Attributes:
        side: Side of the square native image, pixels; a multiple of `view_side`.
        view_side: Side of the view, pixels.
        signs: Minimum and maximum number of signs. A counting question always has the maximum, so
            that the number of signs, which the view shows, does not reveal the answer.
        detail: Side of the panel that contains the detail, view px.
        least_detail: Side of the smallest panel, view px; 0 if all have the side `detail`.
        frame: Width of a sign's colored frame, view px.
        details: Kinds of details on signs: ``"colour"`` (stripes) or ``"text"`` (a word), which
            the view does not show; in degraded scenes ``"object"`` or ``"number"``.
        kinds: Kinds of question, of `KINDS`.
        shapes: Shapes of signs.
        clutter: Clutter of the background, 0 to 1.
        occluders: Whether leaves cover parts of the frames; details are never covered.
        stripe_period: Distance of two stripes, view px.
        stripe_colors: Three or more colors of stripes; empty for all.
        grid: Signs are placed in the middle of cells of a grid with this side, view px.
        grain: Amplitude of sensor noise at the rendered resolution, in gray levels of 255.
        material: The surface behind the signs, of `MATERIALS`.
        degradation: How the native image loses its details; None if it does not.

    Raises:
        ConfigurationError: If a value is out of its range.
    """

    side: int
    view_side: int
    signs: tuple[int, int]
    detail: int
    frame: int
    least_detail: int = 0
    details: tuple[str, ...] = ("colour", "text")
    kinds: tuple[str, ...] = KINDS
    shapes: tuple[str, ...] = tuple(SHAPES)
    clutter: float = 0.3
    occluders: bool = False
    stripe_period: int = 3
    stripe_colors: tuple[str, ...] = ()
    grid: int = 1
    grain: int = 4
    material: str = "landscape"
    degradation: Degradation | None = None

    def __post_init__(self) -> None:
        if self.side % self.view_side:
            raise ConfigurationError(
                f"side must be a multiple of view_side, got {self.side} and {self.view_side}."
            )
        fewest, most = self.signs
        if not 1 <= fewest <= most <= len(FRAMES):
            raise ConfigurationError(
                f"A scene must have 1 to {len(FRAMES)} signs, got {self.signs}."
            )
        if not self.kinds or (most < 2 and "relation" in self.kinds):
            raise ConfigurationError(
                "kinds must not be empty, and a relation needs 2 signs, got "
                f"kinds={self.kinds} and signs={self.signs}."
            )
        for kind in self.kinds:
            if kind not in KINDS:
                raise UnknownNameError("kind of question", str(kind), KINDS)
        if not 0 <= self.least_detail <= self.detail:
            raise ConfigurationError(
                f"least_detail must be at most detail, {self.detail}, got {self.least_detail}."
            )
        if self.material not in MATERIALS:
            raise UnknownNameError("material", self.material, MATERIALS)
        if not 1 <= self.grid <= self.view_side:
            raise ConfigurationError(
                f"grid must be at least 1 px and at most view_side, {self.view_side} px, "
                f"got {self.grid}."
            )
        side = max(map(self.sign_side, self.shapes))
        if side * 2 > self.view_side:
            raise ConfigurationError(
                f"A sign may have at most half of view_side, {self.view_side} px, got {side} px: "
                "increase view_side, or choose smaller panels."
            )
        self._check_stripe_colors()

    def _check_stripe_colors(self) -> None:
        if 0 < len(self.stripe_colors) < 3:  # two are compared, and the other signs have a third
            raise ConfigurationError(
                f"stripe_colors must be three or more colors, or empty, got {self.stripe_colors}."
            )
        if len(set(self.stripe_colors)) < len(self.stripe_colors):
            raise ConfigurationError(f"stripe_colors must differ, got {self.stripe_colors}.")
        for color in self.stripe_colors:
            if color not in DETAILS["colour"].options:
                raise UnknownNameError("color of stripes", color, DETAILS["colour"].options)

    @property
    def unit(self) -> Fraction:
        """Return the native pixels per view pixel."""
        return Fraction(self.side, self.view_side)

    @property
    def rendered_unit(self) -> Fraction:
        """Return the rendered pixels per view pixel."""
        return OVERSAMPLING * self.unit

    def values(self, detail: str) -> tuple[str, ...]:
        """Return the possible values of a detail on a sign."""
        restricted = self.stripe_colors if detail == "colour" else ()
        return restricted or DETAILS[detail].options

    def sign_side(self, shape: str, detail: int | None = None) -> int:
        """Return the side of a sign of that shape, view px; by default, with the largest panel."""
        return outer_side(shape, detail or self.detail, self.frame, 1)


TINY_COLORS = ("red", "green", "blue")
"""The colors of stripes in the tiny scenes, which differ in hue. The gaps between stripes have the
complementary color; red stripes, for example, have cyan gaps."""

TINY = SceneDifficulty(
    side=288,
    view_side=96,
    signs=(1, 3),
    detail=16,
    frame=3,
    details=("colour",),
    shapes=("square",),
    clutter=0.0,
    stripe_period=1,
    stripe_colors=TINY_COLORS,
    grid=24,
)

DEGRADED = SceneDifficulty(
    side=768,
    view_side=256,
    signs=(2, 4),
    detail=6,
    frame=1,
    least_detail=4,
    details=("object", "number"),
    shapes=("square",),
    clutter=1.0,
    material="textures",
    degradation=Degradation(blur=1.0, noise=1.0, jpeg=95),
)
"""Signs of 18 to 24 native pixels; `benchmarks/degraded.py` measures who reads them."""

TINY_DEGRADED = replace(
    TINY,
    side=96,
    signs=(1, 1),
    details=("number",),
    kinds=("attribute",),
    material=DEGRADED.material,
    degradation=DEGRADED.degradation,
)
"""One sign with a panel of 16 native pixels; those of `DEGRADED` have 12 to 18. The view has the
native size, so that a crop of a grid cell is enlarged four times."""

SCENES = {
    "simple": SceneDifficulty(side=768, view_side=256, signs=(1, 3), detail=30, frame=4),
    "complex": SceneDifficulty(
        side=768,
        view_side=256,
        signs=(4, 8),
        detail=20,
        frame=3,
        clutter=1.0,
        occluders=True,
    ),
    "tiny": TINY,
    "tiny-complex": replace(TINY, signs=(3, 3)),
    "degraded": DEGRADED,
    "degraded-photographs": replace(DEGRADED, material="photographs"),
    "tiny-degraded": TINY_DEGRADED,
    "tiny-clean": replace(TINY_DEGRADED, side=384, degradation=Degradation(0.0, 0.0, 100)),
}
"""The difficulties. The tiny ones have views of 96 px, for very small models."""
