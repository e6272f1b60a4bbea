"""Tests confidence intervals: values worked by hand, and properties."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.evaluation.intervals import (
    Mean,
    difference,
    mean,
    mean_of,
    pass_at_k,
    proportion,
    repeat_metrics,
    share,
)
from visenv.evaluation.summary import summarize
from visenv.evaluation.values import counted_values, sample_of
from visenv.types import Episode, Failure


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        # z² = 3.841459. 5 in 10: middle (0.5 + 0.192073) / 1.384146 = 0.5, half width
        # 1.959964 x sqrt(0.025 + 0.009604) / 1.384146 = 1.959964 x 0.186021 / 1.384146 = 0.263407.
        (5, 10, 0.236593, 0.763407),
        # 0 in 10: middle 0.192073 / 1.384146 = 0.138766, the same half width: 0 to 0.277533.
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        # 1 in 1: 1 / (1 + z²) = 1 / 4.841459 to 1.
        (1, 1, 0.206549, 1.0),
        # 320 in 550, a plausible track of ARMBench-VL: middle (0.581818 + 0.003492) / 1.006984 =
        # 0.581250, half width 1.959964 x sqrt(0.000442374 + 0.00000317476) / 1.006984 = 0.041084.
        (320, 550, 0.540167, 0.622334),
    ],
)
def test_wilson_by_hand(hits: int, count: int, low: float, high: float) -> None:
    found = proportion(hits, count)
    assert found.value == hits / count
    assert found[1:] == pytest.approx((low, high), abs=2e-6)


def test_normal_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, s = sqrt(5/3) = 1.290994, half width 1.959964 x 1.290994 / 2 = 1.265151.
    found = mean([1, 2, 3, 4])
    assert found == pytest.approx((2.5, 1.234849, 3.765151), abs=1e-6)
    assert found.half_width == pytest.approx(1.265151, abs=1e-6)
    assert str(found) == "2.500 [1.235, 3.765]"


def test_interval_of_no_values() -> None:
    assert str(mean([0.25])) == "0.250"
    assert math.isnan(mean([0.25]).low)
    assert all(math.isnan(each) for each in (*mean([]), *proportion(0, 0)))
    assert math.isnan(Mean(1.0, math.nan, math.nan).half_width)


def test_mean_of_means_by_hand() -> None:
    # Below: sqrt(0.3² + 0.4²) / 2 = 0.25; above: sqrt(0.12² + 0.05²) / 2 = 0.065.
    found = mean_of([Mean(0.5, 0.2, 0.62), Mean(0.7, 0.3, 0.75)])
    assert found == pytest.approx((0.6, 0.35, 0.665))
    assert str(found) == "0.600 [0.350, 0.665]"
    assert str(mean_of([Mean(1.0, math.nan, math.nan)])) == "1.000"


def test_share_of_samples_that_are_played_once_has_wilsons_interval() -> None:
    assert share([1.0, 0.0, 1.0, 1.0, 0.0]) == pytest.approx(proportion(3, 5))


def test_repeats_that_agree_do_not_narrow_an_interval() -> None:
    values = [1.0, 0.0, 1.0, 1.0, 0.0]
    repeated = [value for value in values for _ in range(8)]
    clusters = [sample for sample in range(5) for _ in range(8)]
    assert share(repeated, clusters) == pytest.approx(proportion(3, 5))
    # Of a mean: the five samples have s = 0.547723, so half width 1.959964 x 0.547723 / sqrt(5).
    assert mean(repeated, clusters) == pytest.approx((0.6, 0.119909, 1.080091), abs=1e-6)
    assert mean(repeated).half_width < 0.2


def test_interval_of_a_share_over_clusters_by_hand() -> None:
    # Samples with 2, 1, 1 and 0 of 2: p = 0.5, SE² = 4/3 (1 + 0 + 0 + 1) / 8² = 1/24, so
    # p (1 - p) / SE² = 6 effective values: Wilson of 3 in 6.
    values, clusters = [1, 1, 1, 0, 0, 1, 0, 0], [1, 1, 2, 2, 3, 3, 4, 4]
    assert share(values, clusters) == pytest.approx(proportion(3, 6))
    # Every sample has 1 of 2: the samples do not differ, so all 8 values count.
    assert share([1, 0] * 4, clusters) == pytest.approx(proportion(4, 8))
    # No value is wrong: only the 4 samples count. With sizes 3 and 1 they count as 4² / 10 = 1.6.
    assert share([1] * 8, clusters) == pytest.approx(proportion(4, 4))
    assert share([1] * 4, [1, 1, 1, 2]) == pytest.approx(proportion(1.6, 1.6))
    assert share([1, 0], ["one", "one"]) == pytest.approx(proportion(0.5, 1))


def test_interval_of_a_mean_over_clusters_of_different_sizes_by_hand() -> None:
    # Mean (1 + 3 + 8) / 3 = 4. Sums minus 4 x size: 4 - 8 = -4 and 8 - 4 = 4, so
    # SE = sqrt(2 (16 + 16)) / 3 = 2.666667, half width 5.226571.
    found = mean([1, 3, 8], ["one", "one", "other"])
    assert found == pytest.approx((4.0, -1.226571, 9.226571), abs=1e-6)
    assert math.isnan(mean([1, 3], ["one", "one"]).low)


def test_interval_of_paired_differences_by_hand() -> None:
    # Agresti and Min: 4 samples, +1 +1 0 -1, and half of +1, -1, 0, 0: mean 1 / 6,
    # variance (3 + 1) / 6 - 1 / 36 = 0.638889, half width 1.959964 sqrt(0.638889 / 6) = 0.639566.
    found = difference([1, 1, 0, -1], of_shares=True)
    assert found == pytest.approx((0.25, -0.472899, 0.806232), abs=1e-6)
    # Equal samples have an interval too: half width 1.959964 sqrt((1 / 12) / 12) = 0.163330.
    assert difference([0] * 10, of_shares=True) == pytest.approx((0, -0.16333, 0.16333), abs=1e-5)
    assert difference([1.0, 3.0], of_shares=False) == mean([1.0, 3.0])
    assert math.isnan(difference([], of_shares=True).value)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_share_over_clusters_lies_in_its_interval(values: list[tuple[float, int]]) -> None:
    found = share([value for value, _ in values], [cluster for _, cluster in values])
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_paired_difference_of_shares_lies_in_its_interval(values: list[float]) -> None:
    found = difference(values, of_shares=True)
    assert -1 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=5))
def test_mean_of_shares_stays_in_0_to_1(groups: list[tuple[int, int]]) -> None:
    found = mean_of([proportion(min(hits, count), count) for hits, count in groups])
    assert -1e-12 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1 + 1e-12


@given(st.integers(1, 10_000), st.data())
def test_wilson_stays_in_0_to_1_and_holds_the_share(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    found = proportion(hits, count)
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1
    other = proportion(count - hits, count)
    assert (other.low, other.high) == pytest.approx((1 - found.high, 1 - found.low))


@given(st.integers(1, 1_000))
def test_interval_narrows_with_more_episodes(count: int) -> None:
    assert proportion(2 * count, 4 * count).half_width < proportion(count, 2 * count).half_width


def episode(sample: str, member: int, accuracy: float | None) -> Episode:
    aborted = accuracy is None
    failure = Failure("service", "judge", "gone") if aborted else None
    metrics = {} if accuracy is None else {"accuracy": accuracy}
    status = "aborted" if aborted else "terminated"
    return Episode(
        "e", sample, "", 0, 0, member, (), status, "", failure, metrics=metrics  # type: ignore[arg-type]
    )  # fmt: skip


def played(**accuracies: list[float | None]) -> list[Episode]:
    return [
        episode(sample, member, accuracy)
        for sample, each in accuracies.items()
        for member, accuracy in enumerate(each)
    ]


def metrics_of_repeats(episodes: list[Episode], repeats: int) -> dict[str, Mean]:
    values = counted_values(episodes)
    return repeat_metrics(zip(map(sample_of, episodes), values, strict=True), repeats)


@pytest.mark.parametrize(
    ("count", "right", "k", "expected"),
    [
        (4, 1, 1, 1 / 4),
        (4, 1, 2, 1 / 2),  # 1 - C(3, 2) / C(4, 2) = 1 - 3 / 6
        (5, 2, 3, 9 / 10),  # 1 - C(3, 3) / C(5, 3) = 1 - 1 / 10
        (8, 3, 4, 13 / 14),  # 1 - C(5, 4) / C(8, 4) = 1 - 5 / 70
        (4, 3, 2, 1.0),  # any two of four include a right one
        (4, 0, 4, 0.0),
        (4, 4, 1, 1.0),
    ],
)
def test_pass_at_k_by_hand(count: int, right: int, k: int, expected: float) -> None:
    assert pass_at_k(count, right, k) == pytest.approx(expected)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one(
    count: int, data: st.DataObject
) -> None:
    right, k = data.draw(st.integers(0, count)), data.draw(st.integers(1, count))
    draws = list(combinations(range(count), k))
    hits = sum(any(place < right for place in draw) for draw in draws)
    assert pass_at_k(count, right, k) == pytest.approx(hits / len(draws))


def test_samples_count_the_same_whatever_their_repeats_came_to() -> None:
    means = metrics_of_repeats(played(a=[1, 1, 0, 0], b=[0, 0, 0, 1], c=[0, 0, 0, 0]), 4)
    assert list(means) == ["avg@4", "pass@1", "pass@2", "pass@4"]
    # pass@2: a 1 - C(2, 2) / C(4, 2) = 5 / 6, b 1 / 2, c 0.
    values = {name: each.value for name, each in means.items()}
    assert values == pytest.approx(
        {"avg@4": 3 / 12, "pass@1": 3 / 12, "pass@2": 4 / 9, "pass@4": 2 / 3}
    )
    assert means["pass@1"] == pytest.approx(means["avg@4"])
    # pass@4 is 1, 1 and 0: Wilson's interval of 2 in 3, for any number of episodes per sample.
    assert means["pass@4"] == pytest.approx(proportion(2, 3))


def test_answer_that_is_partly_right_does_not_pass() -> None:
    means = metrics_of_repeats(played(a=[0.6, 1.0], b=[0.9, 0.3]), 2)
    assert means["avg@2"].value == pytest.approx(0.7)
    assert means["pass@2"].value == pytest.approx(1 / 2)


def test_sample_with_missing_repeats_has_no_pass_at_more() -> None:
    counted = played(a=[1, 0, 0], b=[1])
    means = metrics_of_repeats(counted, 3)
    assert means["pass@1"].value == pytest.approx((1 / 3 + 1) / 2)
    assert means["pass@3"] == pytest.approx(proportion(1, 1))


def test_aborted_repeat_is_a_wrong_one() -> None:
    means = metrics_of_repeats(played(a=[1, None], b=[None, None]), 2)
    # pass@1: 1/2 and 0; pass@2: 1 and 0.
    values = {name: each.value for name, each in means.items()}
    assert values == pytest.approx({"avg@2": 1 / 4, "pass@1": 1 / 4, "pass@2": 1 / 2})


def test_summary_counts_samples_and_not_repeats() -> None:
    (row,) = summarize(played(a=[1, 1, 1], b=[0, 0, None])).rows
    assert (row.episodes, row.samples, row.aborted) == (6, 2, 1)
    assert row.means["pass@3"].value == 0.5
    # The accuracy is 3 in 6; the two samples are 2 effective episodes.
    assert row.means["accuracy"] == pytest.approx(proportion(1, 2))


def test_repeat_that_never_read_its_sample_belongs_to_it() -> None:
    first, second = played(a=[1, None])
    (row,) = summarize([first, replace(second, sample_id="")]).rows
    assert (row.episodes, row.samples, row.means["pass@2"].value) == (2, 1, 1.0)


def test_samples_that_are_played_once_have_no_pass_at_k() -> None:
    (row,) = summarize(played(a=[1], b=[0])).rows
    assert row.samples == row.episodes == 2
    assert not any("@" in name for name in row.means)
    assert repeat_metrics([], 4) == {}
