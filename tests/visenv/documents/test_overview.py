from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text_documents import TextDocument, page_color
from visenv.documents.overview import (
    GRID_GAP,
    LARGEST_TILE,
    columns_of,
    label_height,
    overview,
    tile_side,
)
from visenv.images import ARM_PIXELS
from visenv.types import Image, Pixels


def document(pages: int, size: tuple[int, int] = (850, 1100), **options: object) -> TextDocument:
    return TextDocument("report", [""] * pages, size=size, **options)  # type: ignore[arg-type]


def boxes(pixels: Pixels, pages: int) -> dict[int, tuple[int, int, int, int]]:
    """Return left, top, right, bottom of each page's color, which must fill one rectangle."""
    assert page_color(1000) == (1000 % 256, 1000 // 256, 7)
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    codes = np.where(blue == 7, red + 256 * green, 0)
    numbers, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
    lasts = codes.size - 1 - np.unique(codes.reshape(-1)[::-1], return_index=True)[1]
    found = {}
    for number, first, last, count in zip(numbers, firsts, lasts, counts, strict=True):
        top, left = divmod(int(first), codes.shape[1])
        bottom, right = divmod(int(last), codes.shape[1])
        if 1 <= number <= pages:
            assert count == (right + 1 - left) * (bottom + 1 - top)
            found[int(number)] = (left, top, right + 1, bottom + 1)
    return found


def test_overview_of_one_page_by_hand() -> None:
    # Long side 448: 850 * 448 / 1100 = 346.18, floored to 346. Label 448 // 14 = 32. Gaps of 6:
    # width 6 + 346 + 6, height 6 + 32 + 448 + 6; the page starts at (6, 38).
    image = overview(document(1))
    assert image.size == (358, 492)
    assert boxes(image.pixels, 1) == {1: (6, 38, 352, 486)}


def test_pages_go_left_to_right_then_down() -> None:
    # Square pages of 448 under labels of 32: cells of 454 x 486; sqrt(5 * 486 / 454) = 2.31, so two
    # columns with the rows 1 2 / 3 4 / 5.
    image = overview(document(5, (1000, 1000)))
    assert image.size == (6 + 2 * 454, 6 + 3 * 486)
    places = {page: box[:2] for page, box in boxes(image.pixels, 5).items()}
    assert places == {1: (6, 38), 2: (460, 38), 3: (6, 524), 4: (460, 524), 5: (6, 1010)}


@pytest.mark.slow
@pytest.mark.parametrize("pages", [2, 20, 100, 1000])
def test_pages_are_shown_in_order_within_the_budget(pages: int) -> None:
    image = overview(document(pages))
    width, height = image.size
    assert width * height <= ARM_PIXELS
    places = {page: (top, left) for page, (left, top, _, _) in boxes(image.pixels, pages).items()}
    assert list(places) == list(range(1, pages + 1))
    assert list(places.values()) == sorted(places.values())
    assert 0.6 < width / height < 1.6


@pytest.mark.parametrize(("pages", "least"), [(6, 448), (20, 350), (100, 150), (1000, 36)])
def test_thumbnails_are_as_large_as_the_budget_lets_them(pages: int, least: int) -> None:
    side = tile_side(pages, ARM_PIXELS)
    assert side >= least
    taken = pages * (side + GRID_GAP) * (side + GRID_GAP + label_height(side))
    assert taken <= ARM_PIXELS
    if side < LARGEST_TILE:
        larger = side + 1
        assert pages * (larger + GRID_GAP) * (larger + GRID_GAP + label_height(larger)) > ARM_PIXELS


def test_thumbnails_have_their_numbers_above() -> None:
    pixels = overview(document(12)).pixels
    label = label_height(tile_side(12, ARM_PIXELS))
    strips = []
    for page, (left, top, right, _) in boxes(pixels, 12).items():
        strip = pixels[top - label : top, left:right]
        assert (strip < 100).any(), f"page {page} has no number"
        strips.append(strip.tobytes())
    assert len(set(strips)) == 12  # the twelve labels differ


def test_page_that_cannot_be_rendered_is_crossed_out_and_the_rest_is_there() -> None:
    pixels = overview(document(3, broken=[2])).pixels
    assert list(boxes(pixels, 3)) == [1, 3]
    assert (pixels == (150, 150, 150)).all(axis=-1).sum() > 1000


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(10, 900), st.integers(10, 900), st.integers(100, ARM_PIXELS))
def test_budget_holds_for_any_document(
    pages: int, width: int, height: int, max_pixels: int
) -> None:
    shown: Image = overview(document(pages, (width, height)), max_pixels=max_pixels)
    assert math.prod(shown.size) <= max_pixels


@given(st.integers(1, 2000), st.integers(1, 500), st.integers(1, 500))
def test_columns(tiles: int, width: int, height: int) -> None:
    assert 1 <= columns_of(tiles, width, height) <= tiles
