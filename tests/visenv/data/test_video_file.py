"""Tests the frames and times of videos whose frame rate varies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from visenv.data.video_file import open_video

pytestmark = pytest.mark.component("opencv")

STEPS = [0.1] * 19 + [6.1] + [0.1] * 39 + [2.0, 0.5, 0.5]
"""Durations of the frames: 2 s, a pause of 6 s, 4 s, a pause of 2 s."""


def boxes(data: bytes | bytearray, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, the place and the length of each box of an MP4 file."""
    while start < end:
        length = int.from_bytes(data[start : start + 4])
        yield bytes(data[start + 4 : start + 8]), start, length
        start += length


def find(data: bytes | bytearray, names: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the places and lengths of nested boxes, the outermost first."""
    start, end = 0, len(data)
    found = []
    for name in names:
        place, length = next((p, n) for each, p, n in boxes(data, start, end) if each == name)
        found.append((place, length))
        start, end = place + 8, place + length
    return found


def vary_rate(path: Path, steps: Sequence[float]) -> None:
    """Write the durations of the frames into an MP4 file whose index follows the frames."""
    data = bytearray(path.read_bytes())
    head = find(data, [b"moov", b"trak", b"mdia", b"mdhd"])[-1][0]
    scale = int.from_bytes(data[head + 20 : head + 24])
    nested = find(data, [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stts"])
    entries = b"".join((1).to_bytes(4) + round(step * scale).to_bytes(4) for step in steps)
    body = b"stts" + bytes(4) + len(steps).to_bytes(4) + entries
    table = (len(body) + 4).to_bytes(4) + body
    place, length = nested.pop()
    data[place : place + length] = table
    for parent, size in nested:
        data[parent : parent + 4] = (size + len(table) - length).to_bytes(4)
    edits = data.find(b"edts")  # the list of edits has the old duration
    data[edits : edits + 4] = b"free"
    path.write_bytes(bytes(data))


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """Return a video whose frames show their numbers as gray levels, at a rate that varies."""
    path = tmp_path / "phone.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 10, (64, 48))
    for number in range(len(STEPS)):
        writer.write(np.full((48, 64, 3), 4 * number, np.uint8))
    writer.release()
    vary_rate(path, STEPS)
    return path


def test_times_are_those_of_the_container(video: Path) -> None:
    frames, times = open_video(video, most=100)
    assert len(frames) == len(STEPS)
    assert times == pytest.approx([0.0, *accumulate(STEPS[:-1])])


def in_sequence(path: Path) -> list[NDArray[np.uint8]]:
    """Return all frames of a video, decoded one after the other, RGB."""
    capture = cv2.VideoCapture(str(path))
    frames: list[NDArray[np.uint8]] = []
    while True:
        found, frame = capture.read()
        if not found:
            return frames
        frames.append(np.asarray(frame[:, :, ::-1], np.uint8))


def test_frames_have_their_numbers_in_any_order(video: Path) -> None:
    frames, _ = open_video(video, most=100)
    every = in_sequence(video)
    order = list(range(len(frames)))
    random.Random(0).shuffle(order)
    wrong = [each for each in order if not np.array_equal(frames[each].pixels, every[each])]
    assert wrong == []


def test_frames_that_are_evenly_spaced_have_their_own_times(video: Path) -> None:
    frames, times = open_video(video, most=4)
    moments = [0.0, *accumulate(STEPS[:-1])]
    every = in_sequence(video)
    for place, number in enumerate((0, 20, 41, 61)):
        assert times[place] == pytest.approx(moments[number])
        assert np.array_equal(frames[place].pixels, every[number])


def test_regular_videos_have_the_times_of_their_rate(tmp_path: Path) -> None:
    path = tmp_path / "camera.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 8, (64, 48))
    for number in range(40):
        writer.write(np.full((48, 64, 3), 5 * number, np.uint8))
    writer.release()
    _, times = open_video(path, most=40)
    assert times == pytest.approx([number / 8 for number in range(40)])
