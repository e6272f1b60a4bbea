"""Tests the drawing of points, masks and spans of a response on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from visenv.grammar.points import FrameNote, Point, SpanNote
from visenv.types import Episode, Image, Message, Turn, Video
from visenv.verifier import Referred
from visenv.viewer.grounding import ImageMark, TimeLane, grounding_marks, lanes, mask_path

FRAME = Image.from_pixels(np.full((50, 100, 3), 90, np.uint8))


def response(referred: Referred, *parts: Any, truth: Any = None) -> Episode:
    """Return an episode that shows these parts, and whose response refers to these points."""
    turn = Turn((Message("user", (*parts, "What?")),), "so", 1.0, (referred,), "stop")
    return Episode("visenv/Test-v0", "s", "", 0, 0, 0, (turn,), "terminated", ground_truth=truth)


def referred(*points: Point, **fields: Any) -> Referred:
    """Return points in an image of 200 x 100 native pixels that was shown as 100 x 50."""
    return Referred(0, points, shown_size=(100, 50), native_size=(200, 100), **fields)


def test_points_are_drawn_where_the_image_was_shown() -> None:
    episode = response(referred(Point(50, 20, "mug")), FRAME)
    assert grounding_marks(episode) == [ImageMark("image", "point", "mug", point=[25.0, 10.0])]


def test_mark_without_a_known_place_is_not_drawn() -> None:
    """Check old records without a native size, several images, and a response without points."""
    point = Point(50, 20, "mug")
    older = referred(point)._replace(native_size=(0, 0))
    assert grounding_marks(response(older, FRAME)) == []
    assert grounding_marks(response(referred(point), FRAME, FRAME)) == []
    assert grounding_marks(response(referred(), FRAME)) == []


def test_points_of_a_video_are_drawn_in_their_frames_and_spans_on_the_bar() -> None:
    video = Video((FRAME, FRAME, FRAME), (0.0, 0.5, 1.0))
    found = referred(
        Point(50, 20, "mug", 2),
        Point(50, 20, "mug", None, 1.0),
        Point(50, 20, "mug", 7),
        Point(50, 20, "mug"),
        frames=(FrameNote(1, None, "it <point x='1' y='2'>mug</point> rains"),),
        spans=(SpanNote(2, None, None, None, "it snows"), SpanNote(3, 1, None, None, "reversed")),
    )
    episode = response(found, video)
    assert [mark.image for mark in grounding_marks(episode)] == ["frame 2", "frame 3"]
    assert lanes(episode) == [
        TimeLane("said", "it snows", 1, 2),
        TimeLane("said", "it mug rains", 0, 0),
    ]


def test_point_beside_its_mask_is_a_miss(grounded: dict[str, Episode]) -> None:
    episode = grounded["ArgosImage"]
    (turn,) = episode.turns
    (found,) = [event for event in turn.events if isinstance(event, Referred)]
    first = found.points[0]
    moved = found._replace(points=(first, first._replace(x=0.5, y=0.5), Point(-1, 9e9, "mug")))
    events = tuple(moved if event is found else event for event in turn.events)
    marks = grounding_marks(replace(episode, turns=(replace(turn, events=events),)))
    assert [mark.what for mark in marks] == ["mask", "hit", "miss", "miss"]


def test_truth_with_fewer_frames_than_the_video_is_left_out(
    grounded: dict[str, Episode],
) -> None:
    episode = grounded["ArgosVideo"]
    truth = replace(episode.ground_truth, frames=episode.ground_truth.frames[:1])
    assert {mark.what for mark in grounding_marks(replace(episode, ground_truth=truth))} == {
        "point"
    }


@pytest.mark.parametrize("scale", [(1.0, 1.0), (0.5, 2.0)])
def test_mask_is_a_rectangle_for_each_run_of_pixels(scale: tuple[float, float]) -> None:
    mask = np.array([[0, 0, 0, 0], [1, 1, 0, 1]], bool)
    across, down = scale
    assert mask_path(mask, scale) == (
        f"M0 {down:g}h{2 * across:g}v{down:g}h-{2 * across:g}z"
        f"M{3 * across:g} {down:g}h{across:g}v{down:g}h-{across:g}z"
    )


def test_large_mask_is_drawn_with_fewer_rows() -> None:
    path = mask_path(np.ones((3000, 10), bool))
    assert path.count("M") == 250  # every 12th row
    assert path.endswith("M0 2988h10v12h-10z")
