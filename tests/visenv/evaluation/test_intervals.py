"""Intervals worked by hand, and their properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.evaluation.intervals import Mean, mean, mean_of, proportion


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        # z² = 3.841459. 5 in 10: middle (0.5 + 0.192073) / 1.384146 = 0.5, half
        # 1.959964 x sqrt(0.025 + 0.009604) / 1.384146 = 1.959964 x 0.186021 / 1.384146 = 0.263407.
        (5, 10, 0.236593, 0.763407),
        # 0 in 10: middle 0.192073 / 1.384146 = 0.138766, half the same: 0 to 0.277533.
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        # 1 in 1: 1 / (1 + z²) = 1 / 4.841459 to 1.
        (1, 1, 0.206549, 1.0),
        # 320 in 550, as a track of ARMBench-VL may be: middle (0.581818 + 0.003492) / 1.006984 =
        # 0.581250, half 1.959964 x sqrt(0.000442374 + 0.00000317476) / 1.006984 = 0.041084.
        (320, 550, 0.540167, 0.622334),
    ],
)
def test_wilson_by_hand(hits: int, count: int, low: float, high: float) -> None:
    share = proportion(hits, count)
    assert share.value == hits / count
    assert share[1:] == pytest.approx((low, high), abs=2e-6)


def test_the_normal_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, s = sqrt(5/3) = 1.290994, half 1.959964 x 1.290994 / 2 = 1.265151.
    found = mean([1, 2, 3, 4])
    assert found == pytest.approx((2.5, 1.234849, 3.765151), abs=1e-6)
    assert found.half_width == pytest.approx(1.265151, abs=1e-6)
    assert str(found) == "2.500 [1.235, 3.765]"


def test_where_nothing_is_known() -> None:
    assert str(mean([0.25])) == "0.250"
    assert math.isnan(mean([0.25]).low)
    assert all(math.isnan(each) for each in (*mean([]), *proportion(0, 0)))
    assert math.isnan(Mean(1.0, math.nan, math.nan).half_width)


def test_the_mean_of_means_by_hand() -> None:
    # Below: sqrt(0.3² + 0.4²) / 2 = 0.25; above: sqrt(0.12² + 0.05²) / 2 = 0.065.
    found = mean_of([Mean(0.5, 0.2, 0.62), Mean(0.7, 0.3, 0.75)])
    assert found == pytest.approx((0.6, 0.35, 0.665))
    assert found.brief == "0.600 ± 0.158"
    assert mean_of([Mean(1.0, math.nan, math.nan)]).brief == "1.000"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=5))
def test_the_mean_of_shares_stays_in_0_to_1(groups: list[tuple[int, int]]) -> None:
    found = mean_of([proportion(min(hits, count), count) for hits, count in groups])
    assert -1e-12 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1 + 1e-12


@given(st.integers(1, 10_000), st.data())
def test_wilson_stays_in_0_to_1_and_holds_the_share(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    share = proportion(hits, count)
    assert 0 <= share.low <= share.value + 1e-12
    assert share.value - 1e-12 <= share.high <= 1
    other = proportion(count - hits, count)
    assert (other.low, other.high) == pytest.approx((1 - share.high, 1 - share.low))


@given(st.integers(1, 1_000))
def test_more_episodes_give_a_narrower_interval(count: int) -> None:
    assert proportion(2 * count, 4 * count).half_width < proportion(count, 2 * count).half_width
