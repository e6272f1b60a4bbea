from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.documents.overview import shrink_page, size_with_side_at_most, stitch
from visenv.errors import ConfigurationError
from visenv.types import Image


def plain(width: int, height: int, value: int) -> Image:
    return Image.from_pixels(np.full((height, width, 3), value, np.uint8))


def noise(width: int, height: int) -> Image:
    return Image.from_pixels(
        np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1120, 1120), (1120, 1120)),
        ((10, 20), (10, 20)),  # images are never enlarged
        # A4 at 200 dpi: 1654 * 1120 / 2339 = 791.996..., floored.
        ((1654, 2339), (791, 1120)),
        # Letter, landscape: 1700 * 1120 / 2200 = 865.45...
        ((2200, 1700), (1120, 865)),
        # Exactly divisible: 840 * 1120 / 1680 = 560.
        ((840, 1680), (560, 1120)),
        # 1 * 1120 / 5000 = 0.2: the side is at least one pixel.
        ((1, 5000), (1, 1120)),
    ],
)
def test_page_sizes_worked_by_hand(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert size_with_side_at_most(size, 1120) == expected


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_floor_is_that_of_the_public_code(width: int, height: int) -> None:
    longest = max(width, height)
    if longest > 1120:  # int(target * short / long), in floating point
        other = max(1, int(1120 * min(width, height) / longest))
        assert sorted(size_with_side_at_most((width, height), 1120)) == [other, 1120]


def test_page_is_shrunk_by_pillows_bicubic() -> None:
    page = noise(300, 400)
    expected = PIL.Image.fromarray(page.pixels).resize((75, 100), PIL.Image.Resampling.BICUBIC)
    assert np.array_equal(shrink_page(page, 100).pixels, np.asarray(expected))


def test_page_that_fits_is_itself() -> None:
    page = noise(30, 40)
    assert shrink_page(page, 40) is page


def test_stitch_of_two_pages_by_hand() -> None:
    # Width 10 + 8 + 4 = 22, height max(6, 3) = 6; the second starts at column 18 and at row
    # (6 - 3) // 2 = 1.
    image = stitch([plain(10, 6, 50), plain(4, 3, 90)])
    expected = np.full((6, 22, 3), 255, np.uint8)
    expected[:, :10] = 50
    expected[1:4, 18:22] = 90
    assert np.array_equal(image.pixels, expected)


def test_pages_are_shrunk_before_they_are_joined() -> None:
    # 2240 x 1120 becomes 1120 x 560; 100 x 200 stays. 1120 + 8 + 100 = 1228; top (560 - 200) / 2.
    image = stitch([plain(2240, 1120, 50), plain(100, 200, 90)])
    assert image.size == (1228, 560)
    assert (image.pixels[180:380, 1128:] == 90).all()
    assert (image.pixels[179, 1128:] == 255).all()


def test_stitch_joins_five_portrait_pages() -> None:
    # Width: 5 * 791 + 4 * 8 = 3987 columns.
    assert stitch([plain(1654, 2339, 0)] * 5).size == (3987, 1120)


def test_stitched_pages_are_shrunk_to_the_budget() -> None:
    # 100 + 8 + 92 = 200 by 50 = 10,000 pixels. sqrt(2500 / 10,000) = 1/2: 100 x 25.
    assert stitch([plain(100, 50, 0), plain(92, 50, 0)], max_pixels=2500).size == (100, 25)
    # sqrt(3000 / 10,000) = 0.5477...: 109.54 and 27.38, floored.
    assert stitch([plain(100, 50, 0), plain(92, 50, 0)], max_pixels=3000).size == (109, 27)
    # An image of exactly the budget is unchanged.
    assert stitch([plain(100, 50, 0), plain(92, 50, 0)], max_pixels=10_000).size == (200, 50)


def test_published_numbers_are_the_defaults() -> None:
    assert stitch.__kwdefaults__ == {
        "gap": 8,
        "long_side": 1120,
        "max_pixels": 80_000_000,
        "numbers": (),
    }


def test_numbered_pages_have_borders_and_their_numbers() -> None:
    # A page of 100 x 60 gets a strip of 10 rows and a border of 1; 8 columns separate two pages.
    image = stitch([plain(100, 60, 50), plain(100, 60, 90)], numbers=[3, 12])
    assert image.size == (102 + 8 + 102, 10 + 62)
    pixels = image.pixels
    for left, value in ((0, 50), (110, 90)):
        frame = pixels[10:, left : left + 102].copy()
        assert (frame[1:-1, 1:-1] == value).all()
        frame[1:-1, 1:-1] = 140
        assert (frame == 140).all()
        assert (pixels[:10, left : left + 102] < 128).any()  # the strip shows the number
    assert (pixels[:, 102:110] == 255).all()
    one, other = pixels[:10, :102], pixels[:10, 110:]
    assert not np.array_equal(one, other)


def test_stitch_refuses_no_page() -> None:
    with pytest.raises(ConfigurationError, match="at least one"):
        stitch([])


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=6),
    st.integers(0, 20),
    st.integers(1, 200),
)
def test_sizes_for_any_pages(sizes: list[tuple[int, int]], gap: int, long_side: int) -> None:
    image = stitch([plain(*size, 0) for size in sizes], gap=gap, long_side=long_side)
    shown = [size_with_side_at_most(size, long_side) for size in sizes]
    assert image.size[0] == sum(width for width, _ in shown) + gap * (len(sizes) - 1)
    assert image.size[1] == max(height for _, height in shown)
    ink = sum(width * height for width, height in shown)
    assert int((image.pixels[..., 0] == 0).sum()) == ink  # all pages are whole, the rest is white
