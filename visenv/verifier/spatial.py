"""Computes the share of points that lie on the thing that their label names (Argos, eq. 1-3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from visenv.errors import ServiceError
from visenv.grammar.points import Point
from visenv.types import Sample
from visenv.verifier.teachers import FrameReference, Place, Teachers

MAX_POINTS = 64
"""Maximum number of points of a response that are scored; further points count as misses."""


async def spatial_score(
    sample: Sample, points: Sequence[Point], teachers: Teachers, *, chart: bool = False
) -> float:
    """Return the mean of `point_scores` over the points of an image; 0 if there are no points."""
    scores = await point_scores(sample, [(0, point) for point in points], teachers, chart=chart)
    return sum(scores) / len(scores) if scores else 0.0


async def point_scores(
    sample: Sample,
    points: Sequence[tuple[int | None, Point]],
    teachers: Teachers,
    *,
    chart: bool = False,
) -> list[float]:
    """Return 1 for each point whose pixel is in the masks of its label, otherwise 0.

    The detector turns a label into boxes, and the segmenter turns the boxes into masks. A point is
    a hit if it lies in the union of the masks. A point outside the image, without a label or
    without a frame is a miss.

    Args:
        sample: The sample.
        points: The points in native pixels, each with the number of its frame, from 0.
        teachers: Detector, segmenter, and for charts and maps the pointing model.
        chart: Whether the pointing model replaces the detector.

    Raises:
        ServiceError: If a teacher failed, or returned an invalid verdict.
    """
    scores = [0.0] * len(points)
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for number, (frame, point) in enumerate(points[:MAX_POINTS]):
        if frame is not None and point.label and _is_inside(point, sample.images[frame].size):
            groups[frame, point.label].append(number)
    found = await teachers.together(
        _hits(
            FrameReference(sample, frame),
            label,
            [(points[number][1].x, points[number][1].y) for number in numbers],
            teachers,
            chart,
        )
        for (frame, label), numbers in groups.items()
    )
    for numbers, hits in zip(groups.values(), found, strict=True):
        for number, hit in zip(numbers, hits, strict=True):
            scores[number] = float(hit)
    return scores


async def _hits(
    seen: FrameReference, label: str, places: list[Place], teachers: Teachers, chart: bool
) -> Sequence[bool]:
    prompts: Sequence[tuple[float, ...]]
    if chart and teachers.pointing_model is not None:
        prompts = await teachers.pointing_model.places(seen, label)
    else:
        prompts = await teachers.detector.boxes(seen, label)
    if not prompts:
        return [False] * len(places)
    hits = await teachers.segmenter.hits(seen, prompts, places)
    if len(hits) != len(places):
        raise ServiceError(
            "segmenter", f"expected {len(places)} verdicts on points, got {len(hits)}."
        )
    return hits


def _is_inside(point: Point, size: tuple[int, int]) -> bool:
    return 0 <= point.x < size[0] and 0 <= point.y < size[1]
