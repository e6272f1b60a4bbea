"""Tests that points of a pointing model are whole pixels of the image as shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.curation.lines import JsonLines
from visenv.curation.step import StepReport
from visenv.envs.argos.curation import DraftAnswers, DrawOverlay, PointToEntities
from visenv.envs.argos.curation.pointing import draw_points
from visenv.envs.argos.curation.traces import trace_prompt
from visenv.episodes import save_images
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.makers import env_maker
from visenv.types import Image, Sample, Video
from visenv.verifier import Teachers, Verifier
from visenv.verifier.models import Coordinates
from visenv.verifier.teachers import FrameReference

SAMPLE = Sample("s", "What?", (Image.from_pixels(np.zeros((200, 400, 3), np.uint8)),), ("a mug",))


def replies(request: Any) -> dict[str, str]:
    prompt = request.messages[-1].parts[-1]
    texts = {
        'Point to "mug".': '<points x1="50.0" y1="10.0" x2="100.1" y2="5" alt="mug">mug</points>',
        'Point to "tray".': '[{"point_2d": [399, 199]}, {"point_2d": [500, 3]}]',
        'Point to "fork".': "There is none.",
    }
    return {"text": texts[prompt], "finish_reason": "stop"}


def pointed(
    folder: Path, coordinates: Coordinates = "pixels", **row: Any
) -> tuple[StepReport, dict[str, Any] | None]:
    path, out = folder / "rows.jsonl", folder / "out.jsonl"
    row = {"id": "a", "index": 0, "sample": "s", "entities": ["mug", "tray", "fork"], **row}
    path.write_text(json.dumps(row))

    def make() -> Any:
        import gymnasium as gym

        return gym.make("visenv/ArgosImage-v0", data=[SAMPLE], view_side=100)

    step = PointToEntities(make, f"rules:{__name__}:replies", pointing_coordinates=coordinates)
    account = step.run(JsonLines(path), out)
    step.close()
    return account, next((line.row for line in JsonLines(out)), None)


def test_molmo_writes_percent_and_qwen_pixels_and_what_is_outside_is_dropped(
    tmp_path: Path,
) -> None:
    """Check 50 % of 400 = 200, shown 50; 10 % of 200 = 20, shown 5; (399, 199), shown (99, 49)."""
    _, row = pointed(tmp_path)
    assert row is not None
    assert row["points"] == [
        {"image": 1, "x": 50, "y": 5, "label": "mug"},
        {"image": 1, "x": 99, "y": 49, "label": "tray"},
    ]


def test_points_from_0_to_1000_are_scaled(tmp_path: Path) -> None:
    """Check 399/1000 of 400 = 159.6, shown 39.9; 199/1000 of 200 = 39.8, shown 9.95."""
    _, row = pointed(tmp_path, "relative1000")
    assert row is not None
    assert row["points"] == [
        {"image": 1, "x": 50, "y": 5, "label": "mug"},  # Molmo's tags are from 0 to 100
        {"image": 1, "x": 39, "y": 9, "label": "tray"},
        {"image": 1, "x": 50, "y": 0, "label": "tray"},
    ]


def test_environment_reads_points_of_its_pointing_model_in_the_given_unit() -> None:
    import gymnasium as gym

    line = f"rules:{__name__}:replies"
    given: Any = dict.fromkeys(("detector", "segmenter", "pointing_model"), line)
    made: list[Teachers] = []

    def verifier(teachers: Teachers, *options: Any) -> Verifier:
        made.append(teachers)
        return Verifier(teachers, *options)

    def places(coordinates: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("visenv.envs.argos.make.Verifier", verifier)
            gym.make("visenv/ArgosImage-v0", teachers=given, pointing_coordinates=coordinates)
        model = made[-1].pointing_model
        assert model is not None
        found = asyncio.run(model.places(FrameReference(SAMPLE), "tray"))
        return [(round(x, 9), round(y, 9)) for x, y in found]

    assert places("pixels") == [(399, 199)]
    assert places("relative1000") == [(159.6, 39.8), (200, 0.6)]
    with pytest.raises(UnknownNameError, match="pointing_coordinates"):
        places("relative")


@pytest.mark.parametrize("row", [{"sample": "other"}, {"entities": "mug"}, {"index": -1}])
def test_row_of_another_sample_or_without_entities_fails(tmp_path: Path, row: Any) -> None:
    account, _ = pointed(tmp_path, **row)
    assert account.failed == {"cannot be read": 1}


def test_relative_coordinates_and_other_environments_are_refused(tmp_path: Path) -> None:
    relative = env_maker("visenv/ArgosImage-v0", ["preset=qwen3"])
    with pytest.raises(ConfigurationError, match="coordinates in pixels"):
        PointToEntities(relative, "oracle")
    with pytest.raises(ConfigurationError, match="Expected ArgosImage-v0"):
        PointToEntities(env_maker("visenv/ZoomVQA-v0", ["preset=tiny"]), "oracle")


def test_samples_without_image_or_answer_are_dropped(tmp_path: Path) -> None:
    import gymnasium as gym

    from visenv.curation.places import row_lines
    from visenv.policies.scripted import ScriptedPolicy

    samples = [Sample("a", "What?", (), ("x",)), Sample("b", "What?", SAMPLE.images), SAMPLE]
    step = DraftAnswers(
        lambda: gym.make("visenv/ArgosImage-v0", data=samples),
        ScriptedPolicy(["A mug."]),
        tmp_path,
    )
    account = step.run(row_lines(samples), tmp_path / "out.jsonl")
    step.close()
    assert account.dropped == {"no image": 1, "no right answer": 1}
    assert account.kept == 1


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
