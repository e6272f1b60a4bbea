"""Defines the teacher of ZoomVQA, which looks beside the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn
from visenv.teacher import GIVING_UP, AimingTeacher

if TYPE_CHECKING:
    import numpy as np

    from .env import ZoomVQA


@dataclass(frozen=True)
class LooksBeside(AimingTeacher["ZoomVQA"]):
    """Zooms beside the target, and gives up unless its crop contains the whole detail.

    The keypoint is the target's center plus the error. Lengths are in sides of the crop, so that
    the flaw has the same effect with all presets.
    """

    summary: ClassVar[str] = (
        "Zooms beside the target, by a constant offset and by noise, and gives up unless the crop "
        "contains the whole detail."
    )
    offset: tuple[float, float] = (0.375, -0.25)
    noise: float = 0.25

    @override
    def turn(self, env: ZoomVQA, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            # Without a box of the detail, nobody knows whether the crop contains it.
            return turn if env.metrics().get("hit", 1.0) else turn._replace(answer=GIVING_UP)
        (x, y), (right, down) = env.target_center(), self.error(rng)
        side = env.preset.crop_side
        return turn._replace(calls=(env.zoom_call((x + side * right, y + side * down)),))
