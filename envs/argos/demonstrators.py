"""Defines the teachers of Argos in the sense of `visenv.teacher`: players of demonstrations.

The module `visenv.envs.argos.teachers` defines the scoring models of the verifier, which the paper
calls teachers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn
from visenv.teacher import AimingTeacher

from .ground_truth import GroundedTruth

if TYPE_CHECKING:
    import numpy as np

    from .env.base import ArgosEnv


@dataclass(frozen=True)
class PointsBeside(AimingTeacher["ArgosEnv"]):
    """Points beside the objects, and gives up unless all points are on them.

    All points of an episode have the same error, in sides of the box around the visible part of
    the object.
    """

    summary: ClassVar[str] = (
        "Points beside the objects, by a constant offset and by noise, and gives up unless every "
        "point is on its object."
    )
    offset: tuple[float, float] = (0.375, -0.25)
    noise: float = 0.25

    @override
    def turn(self, env: ArgosEnv, rng: np.random.Generator) -> ParsedTurn:
        if not isinstance(env.sample.ground_truth, GroundedTruth):
            return env.oracle_turn()  # a row of a data set, whose objects are not known
        return env.grounded_turn(self.error(rng), self.further_frames)

    @property
    def further_frames(self) -> int:
        """Return the number of frames by which a span is too long at each end."""
        return 0


@dataclass(frozen=True)
class LongSpans(PointsBeside):
    """Points beside the objects, and cites spans that are too long.

    Attributes:
        frames: The number of frames by which a span is too long at each end, at strength 1.

    Raises:
        ConfigurationError: If `frames` is negative.
    """

    summary: ClassVar[str] = (
        "Cites spans that are too long by two frames at each end, points beside the objects, by a "
        "constant offset and by noise, and gives up unless every point is on its object."
    )
    frames: int = 2

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_not_negative("frames")

    @property
    @override
    def further_frames(self) -> int:
        return round(self.strength * self.frames)
