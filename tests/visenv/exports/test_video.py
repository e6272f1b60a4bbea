"""Tests videos that are written, read back with another program's decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from visenv.data.video_file import open_video
from visenv.errors import ConfigurationError
from visenv.exports.video import write_video
from visenv.types import Pixels


def flat(*levels: int, size: tuple[int, int] = (32, 48)) -> list[Pixels]:
    return [np.full((*size, 3), (level, 255 - level, 30), np.uint8) for level in levels]


def test_mp4_repeats_frames_until_the_next_time_and_keeps_the_order_of_colors(
    tmp_path: Path,
) -> None:
    path = write_video(tmp_path / "a.mp4", flat(0, 120, 240), [0.0, 0.2, 0.25], 20)
    frames, times = open_video(path)
    # 0.2 s and 0.05 s at 20 frames per second, and the last frame once
    levels = [int(frame.pixels[16, 24, 0]) for frame in frames]
    assert levels == pytest.approx([0, 0, 0, 0, 120, 240], abs=6)
    assert times == pytest.approx([number / 20 for number in range(6)])
    assert frames[0].pixels[16, 24].tolist() == pytest.approx([0, 255, 30], abs=6)
    assert list(tmp_path.iterdir()) == [path]


def test_webp_shows_each_frame_until_the_next_time(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.webp", flat(0, 120, 240), [0.0, 0.2, 0.25], 20)
    durations = []
    with PIL.Image.open(path) as film:
        for number in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(number)
            film.load()
            durations.append(film.info["duration"])
    assert durations == [200, 50, 1000]


@pytest.mark.parametrize(
    ("name", "frames", "times", "message"),
    [
        ("a.avi", flat(1), [0.0], r"\*\.mp4 or \*\.webp"),
        ("a.mp4", [], [], "at least one frame"),
        ("a.mp4", flat(1, 2), [0.0], "one time for each frame"),
        ("a.mp4", [*flat(1), *flat(1, size=(8, 8))], [0.0, 1.0], "frames of one size"),
        ("a.mp4", flat(1, size=(31, 48)), [0.0], "must be even"),
    ],
)
def test_video_that_cannot_be_written_is_refused_and_leaves_no_file(
    tmp_path: Path, name: str, frames: list[Pixels], times: list[float], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        write_video(tmp_path / name, frames, times, 20)
    assert list(tmp_path.iterdir()) == []


def test_video_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").symlink_to(tmp_path / "b.mp4")
    with pytest.raises(ConfigurationError, match="is a link"):
        write_video(tmp_path / "a.mp4", flat(1), [0.0], 20)
