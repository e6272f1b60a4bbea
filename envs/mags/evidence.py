"""Computes how much of the known evidence of a procedural scene the boxes of round 1 have shown.

A box is a hit if its crop contains a sign that must be looked at, and a miss otherwise. Without
the penalty for misses, boxes on a grid would earn more than a look at all counted signs, because a
scene has more signs than counted ones. The log does not show whether a policy uses the crops.
The terms for zooming are therefore corrected for chance: a wrong answer loses as much as a lucky
guess gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from visenv.types import EventLog, QuestionTruth, Sample
from visenv.types.ground_truth import Boxes

from .answers import is_exact
from .boxes import area
from .ground_truth import MagsTruth

ZoomRule = Literal["evidence", "valid"]

COVERED = 0.9
"""Minimum share of a ground-truth box that a crop must contain to cover it."""

MISS = 0.05
"""Penalty for a box that is invalid or, if the evidence is known, shows none of it."""


class ShownEvidence(NamedTuple):
    """Describes the evidence that the boxes have shown.

    Attributes:
        coverage: The share of the signs to look at that a crop contained, 0 to 1.
        misses: The number of written boxes that showed none of them.
    """

    coverage: float
    misses: int

    @property
    def grounding(self) -> float:
        """Return the coverage minus the penalty for misses, 0 to 1."""
        return max(0.0, self.coverage - MISS * self.misses)


def evidence_of(sample: Sample) -> Boxes:
    """Return the boxes of all signs that must be looked at, if they are known."""
    truth = sample.ground_truth
    if isinstance(truth, MagsTruth):
        return truth.evidence_boxes
    return truth.target_boxes if isinstance(truth, QuestionTruth) else ()


def knows_evidence(sample: Sample) -> bool:
    """Return whether the sample is a procedural scene, with boxes of all signs to look at."""
    return isinstance(sample.ground_truth, MagsTruth) and bool(evidence_of(sample))


def shown_evidence(log: EventLog, sample: Sample) -> ShownEvidence:
    """Return the evidence that the boxes of round 1 have shown."""
    evidence = evidence_of(sample)
    details = [call.detail for call in log.tool_calls if call.turn == 0 and "boxes" in call.detail]
    written = sum(detail["written"] for detail in details)
    crops = [each["box"] for detail in details for each in detail["boxes"] if each["box"]]
    hits = sum(any(covers(crop, box) for box in evidence) for crop in crops)
    return ShownEvidence(coverage(crops, evidence), written - hits)


def coverage(crops: Sequence[Sequence[float]], evidence: Boxes) -> float:
    """Return the share of the boxes that a crop covers, 0 if there are no boxes."""
    covered = sum(any(covers(crop, box) for crop in crops) for box in evidence)
    return covered / len(evidence) if evidence else 0.0


def covers(crop: Sequence[float], box: Sequence[float]) -> bool:
    """Return whether a crop contains at least `COVERED` of a box."""
    across = min(crop[2], box[2]) - max(crop[0], box[0])
    down = min(crop[3], box[3]) - max(crop[1], box[1])
    return across > 0 and down > 0 and across * down >= COVERED * area(box)


def over_chance(log: EventLog, sample: Sample) -> float:
    """Return 1 for an exact answer, otherwise -p / (1 - p) for the probability p of a right guess.

    The mean over all options is 0.
    """
    if log.answer is not None and is_exact(log.answer, sample.answers):
        return 1.0
    options = len(sample.truth_as(QuestionTruth).options)
    return -1 / (options - 1) if options > 1 else 0.0
