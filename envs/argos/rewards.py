"""Defines the rewards of Argos, selections of the verifier's terms (tables 6 to 8), and metrics.

================  ================================  ===============================
reward            terms                             row of the paper's ablations
================  ================================  ===============================
``argos``         accuracy, grounding, reasoning    Argos
``no_reasoning``  accuracy, grounding               -RQ
``outcome``       accuracy                          -VG (after -RQ)
``no_grounding``  accuracy, reasoning               none: our own ablation
================  ================================  ===============================

Grounding is the spatial score of images and the temporal score of videos. The maximum is 1.
"""

from __future__ import annotations

from typing import Literal

from visenv.types import Sample
from visenv.verifier import Referred
from visenv.verifier.grounding import frame_number, span_frames

from .ground_truth import GroundedTruth

Reward = Literal["argos", "no_reasoning", "no_grounding", "outcome"]

TERMS_OF: dict[Reward, tuple[str, ...]] = {
    "argos": ("accuracy", "spatial", "temporal", "reasoning"),
    "no_reasoning": ("accuracy", "spatial", "temporal"),
    "no_grounding": ("accuracy", "reasoning"),
    "outcome": ("accuracy",),
}


def measure(sample: Sample, referred: Referred) -> dict[str, float]:
    """Return ``points``, and with known masks ``pointing_accuracy`` and ``label_recall``.

    Videos with events also have ``temporal_iou``. A response without points has a pointing accuracy
    of 0, and one without spans a temporal IoU of 0.
    """
    measures = {"points": float(len(referred.points))}
    truth = sample.ground_truth
    if not isinstance(truth, GroundedTruth):
        return measures
    hits: list[bool] = []
    reached: set[str] = set()
    for point in referred.points:
        frame = frame_number(point.frame, point.time, truth.times) if truth.times else 0
        hit = frame is not None and truth.shows(frame, point.label, point.x, point.y)
        hits.append(hit)
        if hit and frame is not None:
            reached |= {
                target for target in truth.targets if truth.shows(frame, target, point.x, point.y)
            }
    measures["pointing_accuracy"] = sum(hits) / len(hits) if hits else 0.0
    measures["label_recall"] = len(reached) / len(truth.targets)
    if truth.events:
        measures["temporal_iou"] = _temporal_iou(truth, referred)
    return measures


def _temporal_iou(truth: GroundedTruth, referred: Referred) -> float:
    overlaps: list[float] = []
    for span in referred.spans:
        event = truth.event_named(span.description)
        found = span_frames(span, truth.times)
        overlaps.append(event.overlap(*found) if event and found else 0.0)
    return sum(overlaps) / len(overlaps) if overlaps else 0.0
