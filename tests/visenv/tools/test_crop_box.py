"""Tests `fit_box` and `smart_size`: published values, cases worked by hand, any boxes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.tools.crop_box import ThinBoxes, enlarged, fit_box, smart_size

# Results of `_maybe_resize_absolute_bbox` of the public code.
PUBLISHED = [
    ((100, 100, 110, 120), (1000, 1000), (91, 82, 119, 138)),
    ((0, 0, 5, 5), (1000, 1000), (0, 0, 28, 28)),
    ((995, 995, 1000, 1000), (1000, 1000), (972, 972, 1000, 1000)),
    ((10, 10, 12, 300), (1000, 1000), None),
    ((0, 0, 1, 150), (1000, 1000), None),
    ((50, 50, 51, 149), (1000, 1000), None),
    ((-5, -5, 2000, 2000), (1000, 800), (0, 0, 1000, 800)),
    ((100.4, 100.6, 300.2, 300.1), (1000, 1000), (100, 100, 301, 301)),
    ((10, 10, 20, 400), (60, 1000), None),
    ((5, 5, 15, 15), (20, 20), None),
]


@pytest.mark.parametrize(("box", "size", "expected"), PUBLISHED)
def test_published_vectors(
    box: tuple[float, ...], size: tuple[int, int], expected: tuple[int, ...] | None
) -> None:
    assert fit_box(box, size, 28, "keep_aspect") == expected


@pytest.mark.parametrize(
    ("box", "size", "expected"),
    [
        # Middle (105, 110): the width grows to 28, 105 - 14 = 91 to 119; the height grows from 20
        # to 28, 110 - 14 = 96 to 124.
        ((100, 100, 110, 120), (1000, 1000), (91, 96, 119, 124)),
        # Middle x 11: 11 - 14 < 0, so 0 to 28; the height is unchanged.
        ((10, 10, 12, 300), (1000, 1000), (0, 10, 28, 300)),
        # 1 x 150 is thinner than 1:100, but 28 x 150 is not.
        ((0, 0, 1, 150), (1000, 1000), (0, 0, 28, 150)),
        # Middle x 50.5: 36.5 to 64.5, rounded outwards 36 to 65.
        ((50, 50, 51, 149), (1000, 1000), (36, 50, 65, 149)),
        # Middle x 15: 1 to 29, which fits into the width of 60.
        ((10, 10, 20, 400), (60, 1000), (1, 10, 29, 400)),
        # 5000 high: at least 50 wide, 500 - 25 = 475 to 525.
        ((499, 0, 501, 5000), (1000, 5000), (475, 0, 525, 5000)),
        # Beyond the right edge, so it is shifted inside: 1000 - 28.
        ((999, 400, 1000, 600), (1000, 1000), (972, 400, 1000, 600)),
        # A side of the image is below 28 pixels, or the image itself is thinner than 1:100.
        ((5, 5, 15, 15), (20, 20), None),
        ((0, 0, 3000, 28), (3000, 29), None),
        # The box is outside the image, or empty.
        ((2000, 0, 3000, 100), (1000, 1000), None),
        ((100, 100, 100, 200), (1000, 1000), None),
    ],
)
def test_padding_grows_the_thin_side_alone(
    box: tuple[float, ...], size: tuple[int, int], expected: tuple[int, ...] | None
) -> None:
    assert fit_box(box, size, 28, "pad_thin_side") == expected


def test_least_side_is_an_argument() -> None:
    # Middle (105, 110): x from 105 - 16 = 89 to 121; y from 110 - 16 = 94 to 126.
    assert fit_box((100, 100, 110, 120), (1000, 1000), 32, "pad_thin_side") == (89, 94, 121, 126)


SIDES = st.integers(1, 5000)
EDGES = st.floats(0, 1) | st.floats(0, 1e-12) | st.sampled_from([0.0, 0.5, 1.0])
MODES: tuple[ThinBoxes, ...] = ("pad_thin_side", "keep_aspect")


@given(SIDES, SIDES, st.lists(EDGES, min_size=4, max_size=4), st.sampled_from(MODES))
def test_window_lies_inside_is_large_enough_and_not_too_thin(
    width: int, height: int, edges: list[float], thin: ThinBoxes
) -> None:
    box = [edge * (width, height)[place % 2] for place, edge in enumerate(edges)]
    window = fit_box(box, (width, height), 28, thin)
    if window is None:
        return
    assert 0 <= window.left < window.right <= width
    assert 0 <= window.top < window.bottom <= height
    assert min(window.size) >= 28
    assert max(window.size) <= 100 * min(window.size)
    if thin == "pad_thin_side":  # the window contains the whole box
        assert window.left <= box[0] < box[2] <= window.right
        assert window.top <= box[1] < box[3] <= window.bottom


@given(st.integers(28, 2800), st.integers(28, 2800), st.lists(EDGES, min_size=4, max_size=4))
def test_padding_refuses_no_box_where_the_image_is_large_enough(
    width: int, height: int, edges: list[float]
) -> None:
    left, right = sorted((edges[0], edges[2]))
    top, bottom = sorted((edges[1], edges[3]))
    box = (left * width, top * height, right * width, bottom * height)
    degenerate = box[0] >= box[2] or box[1] >= box[3]
    assert (fit_box(box, (width, height), 28, "pad_thin_side") is None) == degenerate


@given(st.integers(28, 1000), st.integers(28, 1000), st.integers(0, 900), st.integers(0, 900))
def test_box_that_is_large_enough_is_kept_by_either_way(
    across: int, down: int, left: int, top: int
) -> None:
    box = (left, top, left + across, top + down)
    for thin in MODES:
        assert fit_box(box, (2000, 2000), 28, thin) == box


def test_crop_with_a_short_side_is_shown_twice_as_large() -> None:
    assert enlarged((223, 4000)) == (446, 8000)
    assert enlarged((224, 224)) == (224, 224)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # 1000 / 28 = 35.7 -> 36 * 28 = 1008; 700 / 28 = 25 exactly.
        ((1000, 700), (1008, 700)),
        # 8000 x 6000 = 48 M: scale sqrt(12845056 / 48e6) = 0.51731; 4138.5 / 28 = 147.8 -> 147,
        # 3103.8 / 28 = 110.9 -> 110.
        ((8000, 6000), (147 * 28, 110 * 28)),
        # 10 x 10 rounds to 28 x 28 (never to 0) = 784 < 3136: scale sqrt(3136 / 100) = 5.6;
        # 56 / 28 = 2 exactly.
        ((10, 10), (56, 56)),
    ],
)
def test_smart_size_worked_by_hand(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert smart_size(size, 28, 4 * 28 * 28, 12_845_056) == expected


@given(st.integers(28, 9000), st.integers(28, 9000))
def test_smart_size_gives_multiples_within_bounds(width: int, height: int) -> None:
    across, down = smart_size((width, height), 32, 256 * 32 * 32, 12_845_056)
    assert across % 32 == down % 32 == 0
    assert 256 * 32 * 32 <= across * down <= 12_845_056
    if max(width, height) <= 4 * min(width, height):  # rounding changes longer images more
        assert math.isclose(across / down, width / height, rel_tol=0.2)
