"""Tests which part of an image a tile of `benchmarks/contact_sheets.py` shows."""

from __future__ import annotations

import numpy as np

from benchmarks.contact_sheets import SIDE, tile
from visenv.types import Image, QuestionTruth, Sample
from visenv.types.ground_truth import Box


def image(width: int, height: int) -> Image:
    """Return an image whose red and green levels are its column and row, modulo 256."""
    rows, columns = np.indices((height, width)) % 256
    return Image.from_pixels(np.dstack([columns, rows, rows]).astype(np.uint8))


def sample(native: Image, box: Box | None) -> Sample:
    truth = QuestionTruth(target_box=box)
    return Sample("one", "?", (native,), ("red",), kind="colour", ground_truth=truth)


def test_tile_surrounds_the_object_at_the_size_of_the_view() -> None:
    """Check a view of a third of the native size: the middle of the box is (400, 300) there."""
    view = image(1024, 768)
    part = tile(view, sample(image(3072, 2304), (1170, 870, 1230, 930)))
    assert part.shape == (SIDE, SIDE, 3)
    assert part[0, 0].tolist() == [400 - 128 - 256, 300 - 128, 300 - 128]


def test_tile_stays_inside_the_image() -> None:
    view = image(1024, 768)
    part = tile(view, sample(view, (1000, 0, 1020, 20)))
    assert part.shape == (SIDE, SIDE, 3)
    assert part[0, 0].tolist() == [(1024 - SIDE) % 256, 0, 0]


def test_tile_without_an_object_is_reduced_or_the_corner() -> None:
    assert tile(image(480, 360), sample(image(480, 360), None)).shape == (192, SIDE, 3)
    large = image(1024, 768)
    assert np.array_equal(tile(large, sample(large, None)), large.pixels[:SIDE, :SIDE])
    small = image(100, 60)
    assert np.array_equal(tile(small, sample(small, None)), small.pixels)
