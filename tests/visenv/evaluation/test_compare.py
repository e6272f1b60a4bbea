"""Tests comparisons of two evaluations on the same samples, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from visenv.errors import DataError
from visenv.evaluation.compare import compare, control_row
from visenv.evaluation.intervals import difference
from visenv.types import Episode, Failure


def episode(sample: str, member: int = 0, index: int | None = None, **metrics: float) -> Episode:
    return Episode(
        "e", sample, "", 0, 0, member, (), "terminated", metrics=metrics, index=index
    )  # fmt: skip


def aborted(sample: str) -> Episode:
    failure = Failure("service", "judge", "gone")
    return Episode("e", sample, "", 0, 0, 0, (), "aborted", "", failure)


def test_differences_are_paired_by_sample() -> None:
    first = [
        episode(name, accuracy=value) for name, value in zip("abcd", (1, 1, 0, 1), strict=True)
    ]
    second = [
        episode(name, accuracy=value) for name, value in zip("dcba", (0, 0, 1, 0), strict=True)
    ]
    row = compare(first, second).of("accuracy")
    assert row is not None
    assert (row.first, row.second, row.samples) == (0.75, 0.25, 4)
    assert row.difference == difference([1, 0, 0, 1], of_shares=True)


def test_sample_is_the_mean_of_its_repeats() -> None:
    first = [episode("a", member, accuracy=value) for member, value in enumerate((1, 0, 1, 0))]
    row = compare(first, [episode("a", accuracy=0.25)]).of("accuracy")
    assert row is not None
    assert row.difference == difference([0.25], of_shares=True)


def test_samples_of_one_side_are_counted_and_left_out() -> None:
    found = compare(
        [episode("a", accuracy=1), episode("b", accuracy=1)],
        [episode("b", accuracy=0), episode("c", accuracy=0), episode("d", accuracy=0)],
    )
    assert (found.samples, found.only_first, found.only_second) == (1, 1, 2)


def test_aborted_episode_counts_as_0() -> None:
    first = [episode("a", accuracy=1), aborted("b")]
    unread = replace(aborted(""), index=0)
    found = compare(
        [*first, unread],
        [*(episode(name, accuracy=1) for name in "ab"), episode("c", 0, 0, accuracy=1)],
    )
    accuracy = found.of("accuracy")
    assert accuracy is not None
    assert accuracy.first == pytest.approx(1 / 3)
    assert (accuracy.second, accuracy.samples) == (1.0, 3)
    assert (found.aborted, found.only_first, found.only_second) == ((2, 0), 0, 0)


def test_rows_of_a_data_set_with_equal_ids_are_different_samples() -> None:
    first = [episode("a", index=0, accuracy=1), episode("a", index=1, accuracy=0)]
    row = compare(first, first[::-1]).of("accuracy")
    assert row is not None
    assert (row.samples, row.difference) == (2, difference([0, 0], of_shares=True))


def test_metric_beyond_0_to_1_has_the_normal_interval() -> None:
    first = [episode("a", score=3), episode("b", score=7)]
    second = [episode("a", score=2), episode("b", score=1)]
    row = compare(first, second).of("score")
    assert row is not None
    # Differences 1 and 6: mean 3.5, s = 3.535534, half width 1.959964 s / sqrt(2) = 4.899910.
    assert row.difference == pytest.approx((3.5, -1.399910, 8.399910), abs=1e-6)


def test_evaluations_of_different_samples_are_refused() -> None:
    with pytest.raises(DataError, match="no sample in common"):
        compare([episode("a", accuracy=1)], [episode("b", accuracy=1)])


def test_tool_necessity_by_hand() -> None:
    plain = [episode(name, accuracy=1) for name in "abc"]
    blind = [episode("a", accuracy=1), episode("b", accuracy=0), episode("c", accuracy=0)]
    row = control_row("no_tool", plain, blind)
    assert (row.metric, row.samples) == ("accuracy", 3)
    assert row.value.value == pytest.approx(1 / 3)
    assert row.difference == difference([0, 1, 1], of_shares=True)


def test_control_in_which_every_episode_was_aborted_has_no_difference() -> None:
    row = control_row("no_tool", [episode("a", accuracy=1)], [aborted("a")])
    assert (row.samples, row.aborted) == (0, 1)
    assert math.isnan(row.difference.value)


def test_task_without_accuracy_compares_rewards() -> None:
    assert control_row("no_image", [episode("a")], [episode("a")]).metric == "reward"
