"""Scores the grounding of a response: points, frames, and time spans (Argos, eq. 1-4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal

from visenv.errors import ServiceError
from visenv.grammar.points import FrameNote, Point, SpanNote, without_tags
from visenv.types import Sample
from visenv.verifier.referred import Referred
from visenv.verifier.teachers import FrameReference, Place, Teachers

MAX_POINTS = 64
"""Maximum number of points of a response that are scored; further points count as misses."""

MAX_NOTES = 32
"""Maximum number of descriptions of frames, and of descriptions of spans, that are judged; further
ones score 0."""

Categories = Literal[2, 3]


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


async def temporal_score(
    sample: Sample,
    times: Sequence[float],
    referred: Referred,
    teachers: Teachers,
    *,
    categories: Categories = 3,
    needs_points: bool = True,
) -> float:
    """Return the mean of the means of the non-empty categories; 0 if all are empty.

    Args:
        sample: The sample; its images are the frames.
        times: Seconds of each frame.
        referred: The points, frames and spans of the response.
        teachers: Detector and segmenter for points, and the judge of descriptions; without a judge,
            only points are scored.
        categories: 3 are points, frames and spans (supplement D); 2 merge points and frames
            (section 3.1).
        needs_points: Whether points count 0 if there are none, as in images. Otherwise a response
            that points to nothing gets the full score for its spans, as in the paper.

    Raises:
        ServiceError: If a teacher failed.
    """
    placed = [(frame_number(each.frame, each.time, times), each) for each in referred.points]
    points = await point_scores(sample, placed, teachers)
    frames: list[float] = []
    spans: list[float] = []
    if teachers.description_judge is not None:
        frames = await _frame_scores(sample, times, referred.frames, teachers)
        spans = await _span_scores(sample, times, referred.spans, teachers)
    if needs_points:
        points = points or [0.0]
    return mean_of_categories(points, frames, spans, categories)


def mean_of_categories(
    points: Sequence[float],
    frames: Sequence[float],
    spans: Sequence[float],
    categories: Categories = 3,
) -> float:
    """Return the mean of the means of the non-empty categories; 0 if all are empty."""
    grouped = [[*points, *frames], spans] if categories == 2 else [points, frames, spans]
    means = [sum(scores) / len(scores) for scores in grouped if scores]
    return sum(means) / len(means) if means else 0.0


def frame_number(frame: int | None, time: float | None, times: Sequence[float]) -> int | None:
    """Return the index of a frame, from 0, or None if the video has no such frame.

    Args:
        frame: The stated frame number, from 1; it takes precedence over `time`.
        time: Seconds; selects the nearest frame, also up to half a frame interval before the first
            or after the last frame.
        times: Seconds of each frame, increasing.
    """
    if frame is not None:
        return frame - 1 if 1 <= frame <= len(times) else None
    if time is None:
        return None
    step = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1.0
    if not times[0] - step / 2 <= time <= times[-1] + step / 2:
        return None
    right = bisect_left(times, time)
    around = [number for number in (right - 1, right) if 0 <= number < len(times)]
    return min(around, key=lambda number: abs(times[number] - time))


def span_frames(span: SpanNote, times: Sequence[float]) -> tuple[int, int] | None:
    """Return the indices of the first and last frame of a span; None if it is outside the video.

    The end of an open span is the last frame. A reversed span counts as outside the video.
    """
    first = frame_number(span.start_frame, span.start_time, times)
    if span.end_frame is None and span.end_time is None:
        last: int | None = len(times) - 1
    else:
        last = frame_number(span.end_frame, span.end_time, times)
    if first is None or last is None or last < first:
        return None
    return first, last


async def _frame_scores(
    sample: Sample, times: Sequence[float], notes: Sequence[FrameNote], teachers: Teachers
) -> list[float]:
    judge = teachers.description_judge
    assert judge is not None
    verdicts = {
        place: judge.frame_is(FrameReference(sample, number), without_tags(note.description))
        for place, note in enumerate(notes[:MAX_NOTES])
        if (number := frame_number(note.frame, note.time, times)) is not None
    }
    return await _scores(len(notes), verdicts, teachers)


async def _span_scores(
    sample: Sample, times: Sequence[float], spans: Sequence[SpanNote], teachers: Teachers
) -> list[float]:
    judge = teachers.description_judge
    assert judge is not None
    verdicts = {
        place: judge.span_is(sample, *frames, without_tags(span.description))
        for place, span in enumerate(spans[:MAX_NOTES])
        if (frames := span_frames(span, times)) is not None
    }
    return await _scores(len(spans), verdicts, teachers)


async def _scores(
    count: int, verdicts: Mapping[int, Awaitable[bool]], teachers: Teachers
) -> list[float]:
    """Return the score of each description; those without a verdict score 0.

    `verdicts` has the pending verdicts by the index of the description.
    """
    scores = [0.0] * count
    found = await teachers.together(verdicts.values())
    for place, verdict in zip(verdicts, found, strict=True):
        scores[place] = float(verdict)
    return scores
