"""Tests the items of figures 8 and 9 that a trace refers to, and how the verifier reads them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.curation.lines import JsonLines
from visenv.envs.argos.curation import ExtractReferences
from visenv.envs.argos.curation.extraction import (
    read_image_items,
    read_video_items,
    references_of,
)
from visenv.errors import DataError
from visenv.grammar.points import FrameNote, Point, SpanNote
from visenv.scorers import ReplyError, Scorer

IMAGE_ITEMS = [
    {"point": [12, 34], "object": "mug"},
    {"point": [12, 34], "object": "mug"},
    {"point": [1, 1], "object": "made up"},
]
IMAGE_TRACE = "<think>The mug at (12, 34) is red, the other at [ 5,6.5 ] is blue.</think>"

VIDEO_TRACE = (
    "<think>The cup at (140, 79) in [F17 @ t=19.21s] falls; [F3 @ t=1.00s] is dark. At (7, 8) it "
    "lies. [F3-F6 @ t=1.00-2.50s] it rolls, and [F7 @ t=3.00s, F8 @ t=3.50s] it stops.</think>"
)
VIDEO_ITEMS: dict[str, list[dict[str, Any]]] = {
    "points": [{"anchor_text": "(140, 79) in [F17 @ t=19.21s]", "object": "cup"}],
    "events": [
        {"anchor_text": "[F3-F6 @ t=1.00-2.50s]", "event": "it rolls"},
        {"anchor_text": "[F7 @ t=3.00s, F8 @ t=3.50s]", "event": "it stops"},
        {"anchor_text": "[F1-F2 @ t=0.00-0.50s]", "event": "is not in the trace"},
    ],
    "observations": [
        {"anchor_text": "[F3 @ t=1.00s]", "description": "it is dark"},
        {
            "anchor_text": "(7, 8)",
            "description": "it lies",
            "object": "cup",
            "frame": "F17",
            "time_s": None,
        },
    ],
}


def replies(request: Any) -> dict[str, str]:
    prompt = request.messages[-1].parts[-1]
    items = VIDEO_ITEMS if "anchor_text" in prompt else IMAGE_ITEMS
    return {"text": f"```json\n{json.dumps(items)}\n```", "finish_reason": "stop"}


def extracted(folder: Path, trace: str, times: list[float]) -> dict[str, Any]:
    path, out = folder / "rows.jsonl", folder / "out.jsonl"
    path.write_text(json.dumps({"id": "a", "trace": trace, "times": times}))
    ExtractReferences(Scorer("rules", function=f"{__name__}:replies")).run(JsonLines(path), out)
    return next(iter(JsonLines(out))).row


def test_points_of_an_image_are_those_of_the_trace_each_once(tmp_path: Path) -> None:
    row = extracted(tmp_path, IMAGE_TRACE, [])
    assert row["extraction"] == {"points": [{"point": [12, 34], "object": "mug"}]}
    assert references_of(row).points == (Point(12.0, 34.0, "mug"),)


def test_items_of_a_video_are_verbatim_and_carry_their_anchors(tmp_path: Path) -> None:
    row = extracted(tmp_path, VIDEO_TRACE, [0.0, 0.5])
    assert [item["event"] for item in row["extraction"]["events"]] == ["it rolls", "it stops"]
    found = references_of(row)
    assert found.points == (Point(140, 79, "cup", 17, 19.21), Point(7, 8, "cup", 17, None))
    assert found.frames == (FrameNote(3, 1.0, "it is dark"),)
    assert found.spans == (
        SpanNote(3, 6, 1.0, 2.5, "it rolls"),
        SpanNote(7, 8, 3.0, 3.5, "it stops"),
    )


def test_item_of_another_form_than_its_list_refers_to_nothing() -> None:
    """Check a span among the points, a point among the events, a span among the observations."""
    span, point = "[F3-F6 @ t=1.00-2.50s]", "(7, 8)"
    extraction = {
        "points": [{"anchor_text": f"{point} in {span}", "object": "cup"}],
        "events": [{"anchor_text": f"{point} in {span}", "event": "it rolls"}],
        "observations": [{"anchor_text": span, "description": "it rolls"}],
    }
    found = references_of({"extraction": extraction})
    assert (found.points, found.frames, found.spans) == ((), (), ())


def test_anchor_may_list_all_frames_of_a_video() -> None:
    listed = ", ".join(f"F{number} @ t={number / 2:.2f}s" for number in range(1, 33))
    event = {"anchor_text": f"[{listed}]", "event": "it rolls"}
    extraction = {"points": [], "events": [event], "observations": []}
    assert references_of({"extraction": extraction}).spans == (
        SpanNote(1, 32, 0.5, 16.0, "it rolls"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[7]",
        '[{"point": [1], "object": "mug"}]',
        '[{"point": [1, NaN], "object": "mug"}]',
        '[{"point": [1, 1e308], "object": "mug"}]',
        '[{"point": [1, 2], "object": ""}]',
        '[{"point": [1, 2], "object": null}]',
        '[{"point": [1, 2]}]',
        "[" * 10_000,
    ],
    ids=lambda text: text[:40],
)
def test_list_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ReplyError):
        read_image_items(text)


@pytest.mark.parametrize(
    "lists",
    [
        {"points": []},
        {"points": [], "events": [], "observations": {}},
        {"points": [{"object": "cup"}], "events": [], "observations": []},
        {"points": [{"anchor_text": 7, "object": "cup"}], "events": [], "observations": []},
        {"points": [], "events": [{"anchor_text": "[F1]"}], "observations": []},
    ],
)
def test_object_of_something_else_is_refused(lists: dict[str, Any]) -> None:
    with pytest.raises(ReplyError):
        read_video_items(json.dumps(lists))


@given(st.text() | st.builds(json.dumps, st.lists(st.dictionaries(st.text(), st.floats()))))
def test_extraction_of_any_reply_raises_nothing_else(text: str) -> None:
    for read in (read_image_items, read_video_items):
        with suppress(ReplyError):
            read(text)


@pytest.mark.parametrize("extraction", [None, [], {"points": 3}, {"points": [{"point": []}]}, {}])
def test_row_without_an_extraction_is_bad_data(extraction: Any) -> None:
    with pytest.raises(DataError, match="no extraction"):
        references_of({"extraction": extraction})
