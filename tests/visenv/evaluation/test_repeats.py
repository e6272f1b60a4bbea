"""Tests pass@k and avg@k: by hand, and by counting."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.evaluation.intervals import Mean, proportion
from visenv.evaluation.repeats import pass_at_k, repeat_metrics
from visenv.evaluation.summary import summarize
from visenv.evaluation.values import counted_values, sample_of
from visenv.types import Episode, Failure


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
