"""Defines the ground truth of questions about crowded images."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Boxes, QuestionTruth
from visenv.worlds.scenes import SignTruth


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class MagsTruth(QuestionTruth):
    """Holds the ground truth of a question; boxes are in native pixels.

    `target_boxes` are the objects that the question is about: the counted ones, the two whose
    positions are compared, or the one with the attribute.

    Attributes:
        evidence_boxes: All objects that must be looked at to be sure of the answer. For a counting
            question these are all signs, including those that do not count.
        signs: All signs of a procedural scene.
    """

    evidence_boxes: Boxes = ()
    signs: tuple[SignTruth, ...] = ()
