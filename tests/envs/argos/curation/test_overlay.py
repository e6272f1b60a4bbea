"""Tests that overlays show every point in the image, its coordinates, and the time of a frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.curation.lines import JsonLines
from visenv.envs.argos.curation import DrawOverlay
from visenv.envs.argos.curation.overlay import draw_points
from visenv.envs.argos.curation.traces import trace_prompt
from visenv.episodes import save_images
from visenv.errors import DataError
from visenv.types import Image, Video

GRAY = Image.from_pixels(np.full((120, 160, 3), 128, np.uint8))


def changed(image: Image) -> Any:
    """Return a mask of the pixels of the gray image that were drawn on, [height, width]."""
    return (image.pixels != 128).any(axis=2)


def test_point_has_a_dot_and_its_coordinates_beside_it() -> None:
    drawn = changed(draw_points(GRAY, [(80, 60)]))
    assert drawn[60, 80]
    rows, columns = np.nonzero(drawn)
    assert rows.min() >= 40
    assert columns.max() > 110  # the text is above the point, to the right
    assert not changed(GRAY).any()


def test_points_outside_the_image_and_repeats_draw_nothing() -> None:
    outside = [(-1, 3), (160, 3), (3, 120), (10**9, 3)]
    assert not changed(draw_points(GRAY, outside)).any()
    once, twice = draw_points(GRAY, [(80, 60)]), draw_points(GRAY, [(80, 60)] * 2)
    assert once.sha256 == twice.sha256


def test_texts_of_close_points_do_not_cover_each_other() -> None:
    """Check that two texts cover about twice the area of one."""
    one = changed(draw_points(GRAY, [(80, 60)])).sum()
    two = changed(draw_points(GRAY, [(80, 60), (82, 62)])).sum()
    assert two > 1.8 * one


def test_frame_has_its_title_in_the_corner() -> None:
    drawn = changed(draw_points(GRAY, [], "F3 @ t=1.00s"))
    assert drawn[1, 1]
    assert not drawn[:, 120:].any()


@settings(max_examples=25)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=20),
)
def test_overlay_draws_any_image_and_points(width: int, height: int, points: Any) -> None:
    image = Image.from_pixels(np.full((height, width, 3), 128, np.uint8))
    assert draw_points(image, points, "F1 @ t=0.00s").size == (width, height)


def overlaid(folder: Path, times: list[float]) -> dict[str, Any]:
    frames = [GRAY, Image.from_pixels(np.full((120, 160, 3), 90, np.uint8))][: len(times) or 1]
    paths = save_images(folder / "images", frames)
    row = {
        "id": "a",
        "question": "Which?",
        "options": ["red", "blue"],
        "images": [str(path) for path in paths],
        "times": times,
        "points": [{"image": 1, "x": 80, "y": 60, "label": "cup"}],
    }
    (folder / "rows.jsonl").write_text(json.dumps(row))
    out = folder / "out.jsonl"
    account = DrawOverlay(folder / "overlay").run(JsonLines(folder / "rows.jsonl"), out)
    assert account.kept == 1
    return next(iter(JsonLines(out))).row


def test_teacher_sees_an_image_and_its_overlay_and_relies_on_the_original(
    tmp_path: Path,
) -> None:
    original, copy, text = trace_prompt(overlaid(tmp_path, []))
    assert isinstance(original, Image)
    assert isinstance(copy, Image)
    assert original.sha256 == GRAY.sha256
    assert copy.sha256 == draw_points(GRAY, [(80, 60)]).sha256
    assert isinstance(text, str)
    assert "Rely on the original" in text
    assert "(A) red\n(B) blue" in text


def test_teacher_sees_the_overlay_of_a_video_alone(tmp_path: Path) -> None:
    video, text = trace_prompt(overlaid(tmp_path, [0.0, 0.5]))
    assert isinstance(video, Video)
    assert video.times == (0.0, 0.5)
    assert video.frames[0].sha256 == draw_points(GRAY, [(80, 60)], "F1 @ t=0.00s").sha256
    assert isinstance(text, str)
    assert "[F2 @ t=0.50s]" in text
    assert "original" not in text


def test_image_without_an_overlay_is_bad_data(tmp_path: Path) -> None:
    row = overlaid(tmp_path, [])
    with pytest.raises(DataError, match="as many overlays"):
        trace_prompt({**row, "images": row["images"][:1]})


@pytest.mark.parametrize(
    "points", [None, [3], [{"image": 0, "x": 1, "y": 1, "label": ""}], [{"image": 1, "x": 1.5}]]
)
def test_points_of_another_form_are_bad_data(tmp_path: Path, points: Any) -> None:
    row = {**overlaid(tmp_path, []), "points": points}
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(row))
    account = DrawOverlay(tmp_path).run(JsonLines(path), tmp_path / "none.jsonl")
    assert account.failed == {"cannot be read": 1}
