from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.mags.boxes import MOST_BOXES, check_boxes, iou, native_window

SIZE = (200, 100)


def problem_of(box: Any, **options: Any) -> str:
    (checked,) = check_boxes([box], SIZE, **options)
    return checked.problem


@pytest.mark.parametrize(
    "box",
    [
        [0, 0, 4, 4],
        [0, 0, 200, 39.9],  # 7980 of 20000 pixels: 39.9 %
        [196, 96, 200, 100],
        [10.5, 10.5, 14.5, 14.5],
    ],
)
def test_box_inside_the_image_is_valid(box: list[float]) -> None:
    assert problem_of(box) == ""


@pytest.mark.parametrize(
    ("box", "part"),
    [
        ([0, 0, 200, 40], "less than 40%"),  # exactly 40 %
        ([0, 0, 200, 100], "less than 40%"),
        ([10, 10, 10, 20], "x1 < x2"),
        ([20, 10, 10, 20], "x1 < x2"),
        ([10, 20, 20, 10], "x1 < x2"),
        ([-1, 0, 10, 10], "inside"),
        ([0, 0, 200.5, 10], "inside"),
        ([0, 91, 10, 101], "inside"),
        ([0, 0, 1e308, 10], "inside"),
        ([0, 0, 3.9, 10], "4 pixels"),
        ([0, 0, 10, 3], "4 pixels"),
        ([1, 2, 3], "four finite numbers"),
        ([1, 2, 3, 4, 5], "four finite numbers"),
        (["1", 2, 30, 40], "four finite numbers"),
        ([math.nan, 2, 30, 40], "four finite numbers"),
        ([1, 2, math.inf, 40], "four finite numbers"),
        ([True, 2, 30, 40], "four finite numbers"),
        ([[1, 2, 30, 40]], "four finite numbers"),
        ([1, 2, 10**400, 40], "four finite numbers"),
        ("1, 2, 3, 4", "four finite numbers"),
        (None, "four finite numbers"),
    ],
)
def test_invalid_box_has_a_reason(box: Any, part: str) -> None:
    assert part in problem_of(box)


def test_box_that_no_image_processor_accepts_is_invalid() -> None:
    wide = (1200, 900)
    thin, thinner = [0, 0, 400, 4], [0, 50, 401, 54]  # 100 and 100.25 to 1
    checked = check_boxes([thin, thinner, [8, 0, 12, 401]], wide)
    assert [each.problem for each in checked] == [
        "",
        *["one side is more than 100 times as long as the other"] * 2,
    ]


def test_boxes_are_examined_up_to_the_16th() -> None:
    boxes = [[10 * place % 190, 0, 10 * place % 190 + 5, 5] for place in range(10_000)]
    assert len(check_boxes(boxes, SIZE, most_overlap=1)) == MOST_BOXES == 16


def test_duplicate_is_invalid_unless_allowed() -> None:
    box, near = [10, 10, 50, 50], [10, 10, 50, 49]  # IoU 39/40 = 0.975
    far = [10, 10, 50, 45]  # 35/40 = 0.875
    assert [each.duplicate for each in check_boxes([box, near, far], SIZE)] == [False, True, False]
    assert not any(each.problem for each in check_boxes([box, box], SIZE, most_overlap=1))


def test_overlap_that_makes_a_duplicate_can_be_set() -> None:
    box, moved = [10, 10, 20, 20], [11, 10, 21, 20]  # IoU 90/110 = 0.818
    for most, duplicate in ((0.9, False), (0.82, False), (0.81, True), (0.5, True)):
        checked = check_boxes([box, moved], SIZE, most_overlap=most)
        assert [each.duplicate for each in checked] == [False, duplicate]


def test_box_is_no_duplicate_of_a_rejected_one() -> None:
    too_large = [0, 0, 200, 41]
    assert [bool(each.problem) for each in check_boxes([too_large, [0, 0, 200, 39]], SIZE)] == [
        True,
        False,
    ]


def test_iou_by_hand() -> None:
    assert iou((0, 0, 10, 10), (5, 5, 15, 15)) == pytest.approx(25 / 175)
    assert iou((0, 0, 10, 10), (10, 0, 20, 10)) == 0


def test_native_window_holds_every_pixel_that_the_box_touches() -> None:
    assert native_window((10, 20, 30, 41), (100, 100), (300, 150)) == (30, 30, 90, 62)


@given(
    st.lists(
        st.lists(
            st.one_of(st.floats(), st.integers(), st.text(max_size=3), st.none(), st.booleans()),
            max_size=6,
        )
        | st.integers(),
        max_size=20,
    ),
    st.integers(1, 300),
    st.integers(1, 300),
)
def test_valid_boxes_cut_pixels_whatever_is_written(
    boxes: list[Any], width: int, height: int
) -> None:
    for each in check_boxes(boxes, (width, height)):
        if not each.problem:
            assert each.box is not None
            left, top, right, bottom = native_window(each.box, (width, height), (7, 900))
            assert 0 <= left < right <= 7
            assert 0 <= top < bottom <= 900
