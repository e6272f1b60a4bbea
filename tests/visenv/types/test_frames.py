"""Tests frames of video files: decoded on demand, in any order, and refused when broken."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.data.video_file import frame_numbers, open_video
from visenv.errors import DataError, ImageError
from visenv.types import Image
from visenv.types.frames import OPENCV, VideoFacts


@pytest.fixture(scope="module")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a video of 200 frames; the gray level of each frame is its number."""
    path = tmp_path_factory.mktemp("movie") / "a.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 20.0, (32, 24))
    for number in range(200):
        writer.write(np.full((24, 32, 3), number, np.uint8))
    writer.release()
    return path


@pytest.mark.parametrize("numbers", [[0, 1, 2], [150, 3, 199], [10, 10], [5, 90, 6]])
def test_frames_are_decoded_in_any_order(movie: Path, numbers: list[int]) -> None:
    for number in numbers:
        image = Image.from_frame(movie, number)
        assert image.size == (32, 24)
        assert image.pixels.mean() == pytest.approx(number, abs=3)
        assert not image.pixels.flags.writeable


def test_frames_pickle_and_travel_without_their_file(movie: Path) -> None:
    image = Image.from_frame(movie, 7)
    again = pickle.loads(pickle.dumps(image))
    assert again == image
    assert (image.in_memory().pixels == image.pixels).all()


def test_frames_are_opened_when_they_are_asked_for(tmp_path: Path) -> None:
    image = Image.from_frame(tmp_path / "missing.mp4", 3)
    with pytest.raises(ImageError, match="missing"):
        _ = image.size


def test_frame_beyond_the_end_is_refused(movie: Path) -> None:
    with pytest.raises(ImageError, match="no frame 200"):
        _ = Image.from_frame(movie, 200).pixels


def test_truncated_file_is_refused(movie: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.avi"
    broken.write_bytes(movie.read_bytes()[: movie.stat().st_size // 3])
    with pytest.raises(ImageError):
        _ = Image.from_frame(broken, 190).pixels
    text = tmp_path / "text.mp4"
    text.write_text("not a video")
    with pytest.raises(ImageError):
        open_video(text)


def test_frames_of_a_long_video_are_evenly_spaced(movie: Path) -> None:
    frames, times = open_video(movie, 5)
    assert times == pytest.approx((0.0, 2.5, 5.0, 7.45, 9.95))
    assert [round(float(frame.pixels.mean()), -1) for frame in frames] == [0, 50, 100, 150, 200]


def test_times_of_a_fast_video_do_not_collide(tmp_path: Path) -> None:
    path = tmp_path / "fast.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 240.0, (32, 24))
    for number in range(33):
        writer.write(np.full((24, 32, 3), number, np.uint8))
    writer.release()
    frames, times = open_video(path)
    assert len(frames) == len(set(times)) == 32
    # Times are read in microseconds.
    assert times[:2] == pytest.approx((0.0, 1 / 240), abs=1e-6)
    assert times[-1] == pytest.approx(32 / 240, abs=1e-6)


@pytest.mark.parametrize(
    ("facts", "most", "numbers"),
    [
        (VideoFacts(3, 10.0, 8, 8), 32, [0, 1, 2]),
        (VideoFacts(1_000_000, 25.0, 8, 8), 3, [0, 500_000, 999_999]),
        (VideoFacts(100, 10.0, 8, 8), 1, [0]),
        (VideoFacts(10, 1000.0, 8, 8), 32, list(range(10))),
    ],
)
def test_frame_numbers(facts: VideoFacts, most: int, numbers: list[int]) -> None:
    assert frame_numbers(facts, "a.mp4", most) == numbers


@pytest.mark.parametrize("facts", [VideoFacts(0, 25.0, 8, 8), VideoFacts(50, 0.0, 8, 8)])
def test_video_of_unknown_length_or_rate_is_refused(facts: VideoFacts) -> None:
    with pytest.raises(DataError, match="known length"):
        frame_numbers(facts, "a.mp4", 32)


def test_shrunk_frame_is_that_of_its_pixels_and_the_frame_is_not_kept(tmp_path: Path) -> None:
    """Check the colors, whose order changes after shrinking: red is left and blue is right."""
    path = tmp_path / "colors.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 20.0, (64, 48))
    frame = np.zeros((48, 64, 3), np.uint8)
    frame[:, :32, 2], frame[:, 32:, 0] = 250, 250  # OpenCV's order: blue, green, red
    writer.write(frame)
    writer.release()
    image = Image.from_frame(path, 0)
    small = image.shrunk((16, 12))
    assert image._pixels is None
    assert small.size == (16, 12)
    expected = cv2.resize(image.pixels, (16, 12), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(small.pixels, expected)
    np.testing.assert_array_equal(image.shrunk((16, 12)).pixels, expected)  # now from its pixels
    red, blue = small.pixels[6, 2], small.pixels[6, 13]
    assert (red[0] > 200, red[2] < 60) == (True, True)
    assert (blue[2] > 200, blue[0] < 60) == (True, True)


VIDEO_ATTACK = pytest.mark.attack("decoders: an image or a video cannot end or stop the process")


@VIDEO_ATTACK
def test_frame_that_is_larger_than_the_header_says_is_refused(
    movie: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("visenv.types.frames.MAX_PIXELS", 100)
    with pytest.raises(ImageError, match="frame 3 of 32x24 pixels; at most 100 are decoded"):
        _ = Image.from_frame(movie, 3).pixels


@VIDEO_ATTACK
def test_decoder_that_crashes_costs_its_frame_alone(movie: Path) -> None:
    assert Image.from_frame(movie, 1).pixels.shape == (24, 32, 3)
    pid = OPENCV.pid
    assert pid not in (0, os.getpid())
    os.kill(pid, signal.SIGKILL)
    assert Image.from_frame(movie, 2).pixels.mean() == pytest.approx(2, abs=3)
    assert OPENCV.pid != pid


@VIDEO_ATTACK
@settings(max_examples=30)
@given(data=st.data())
def test_damaged_video_is_read_or_refused(
    movie: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "a.avi"
    content = bytearray(movie.read_bytes())
    edits = st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=8))
    for place, new in data.draw(st.lists(edits, min_size=1, max_size=6)):
        content[place : place + len(new)] = new
    path.write_bytes(bytes(content))
    try:
        frames, _ = open_video(path, 3)
        for frame in frames:
            assert frame.pixels.shape[2] == 3
    except DataError as error:
        assert "a.avi" in str(error)  # noqa: PT017 - both outcomes are right


@VIDEO_ATTACK
@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:{port}/a.ts\n",
        "ffconcat version 1.0\nfile 'http://127.0.0.1:{port}/a.ts'\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\n",
    ],
)
def test_playlist_opens_no_connection(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.mp4"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        path.write_text(text.format(port=server.getsockname()[1]))
        with pytest.raises(DataError):
            open_video(path)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_shrunk_copy_of_an_image_is_kept_until_another_size_is_requested() -> None:
    image = Image.from_pixels(np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3))
    small = image.shrunk((32, 24))
    assert image.shrunk((32, 24)) is small
    other = image.shrunk((16, 12))
    assert other.size == (16, 12)
    expected = np.asarray(cv2.resize(image.pixels, (32, 24), interpolation=cv2.INTER_AREA))
    np.testing.assert_array_equal(image.shrunk((32, 24)).pixels, expected)
