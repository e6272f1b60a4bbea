"""Defines the teacher of ZoomVQA, which looks beside the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn
from visenv.teacher import Teacher

if TYPE_CHECKING:
    import numpy as np

    from .env import ZoomVQA

GIVING_UP = "unknown"
"""The answer of the teacher if its crop does not contain the whole detail."""


@dataclass(frozen=True)
class LooksBeside(Teacher["ZoomVQA"]):
    """Zooms beside the target, and gives up unless its crop contains the whole detail.

    The keypoint is the target's center plus ``strength * (offset + noise * z)``, where z has a
    standard normal distribution on each axis. Lengths are in sides of the crop, so that the flaw
    has the same effect with all presets.

    Attributes:
        offset: The constant part of the error, (x, y).
        noise: The standard deviation of the random part for each axis, 0 or more.

    Raises:
        ConfigurationError: If `noise` is negative.
    """

    summary: ClassVar[str] = (
        "Zooms beside the target, by a constant offset and by noise, and gives up unless the crop "
        "contains the whole detail."
    )
    offset: tuple[float, float] = (0.375, -0.25)
    noise: float = 0.25

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise >= 0:
            raise ConfigurationError(f"noise must be 0 or more, got {self.noise!r}.")

    @override
    def turn(self, env: ZoomVQA, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            # Without a box of the detail, nobody knows whether the crop contains it.
            return turn if env.metrics().get("hit", 1.0) else turn._replace(answer=GIVING_UP)
        side = self.strength * env.preset.crop_side
        x, y = (
            center + side * (offset + self.noise * float(normal))
            for center, offset, normal in zip(
                env.target_center(), self.offset, rng.standard_normal(2), strict=True
            )
        )
        return turn._replace(calls=(env.zoom_call((x, y)),))
