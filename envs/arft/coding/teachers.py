"""Defines the teacher of ArftCoding, which repairs the image wrongly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import GIVING_UP, LapsingTeacher

from . import prompts
from .ground_truth import CodingTruth, Distortion
from .repairs import repair

if TYPE_CHECKING:
    import numpy as np

    from .env import ArftCoding


@dataclass(frozen=True)
class WrongRepair(LapsingTeacher["ArftCoding"]):
    """Repairs the image with a wrong strength or rotation, and gives up.

    An image without a problem needs no repair. The teacher then answers like the oracle.
    """

    summary: ClassVar[str] = (
        "Repairs the image with a wrong strength or rotation and gives up, in 75 % of the episodes "
        "whose image has a problem."
    )
    rate: float = 0.75

    @override
    def mistaken_turn(self, env: ArftCoding, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            gives_up = ParsedTurn(prompts.unseen(env.is_brief), answer=GIVING_UP)
            return gives_up if "code" in env.truth.steps else turn
        if turn.calls[0].name != "code":
            return turn
        code = repair(replace(env.sample, ground_truth=mistaken(env.truth)), brief=env.is_brief)
        return turn._replace(calls=(ToolCall("code", {"code": code}),))


def mistaken(truth: CodingTruth) -> CodingTruth:
    """Return the problems with weaker strengths and other rotations, so that `repair` is wrong."""
    box = None
    if truth.box is not None:
        left, top, right, bottom = truth.box
        # The part on the other side of the middle of the image.
        box = (1000 - right, 1000 - bottom, 1000 - left, 1000 - top)
    return replace(truth, box=box, distortions=tuple(map(_mistaken, truth.distortions)))


def _mistaken(distortion: Distortion) -> Distortion:
    match distortion:
        case Distortion(name="rotation90"):
            return replace(distortion, name="rotation180", clockwise=None)
        case Distortion(name="rotation180"):
            return replace(distortion, name="rotation90", clockwise=True)
        case Distortion(gain=float(gain)):
            return replace(distortion, gain=math.sqrt(gain))
        case Distortion(veil=float(veil)):
            return replace(distortion, veil=math.sqrt(veil))
        case Distortion(kernel=int(kernel), sigma=float(sigma)):
            return replace(distortion, kernel=kernel // 4 * 2 + 1, sigma=sigma / 2)
    return replace(distortion, density=None)  # noise: black and white pixels are only smoothed
