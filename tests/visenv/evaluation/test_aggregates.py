"""Tests interquartile means, profiles and probabilities of improvement by hand and with rliable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from visenv.evaluation.aggregates import (
    difference_of_means,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)

FIRST = [[0.90, 0.84, 0.95], [0.70, 0.78, 0.66], [0.55, 0.41, 0.60], [0.31, 0.35, 0.20]]
SECOND = [[0.80, 0.82, 0.79], [0.72, 0.60, 0.69], [0.50, 0.58, 0.36], [0.33, 0.30, 0.22]]
"""Scores of two algorithms: four tasks, three runs."""

RESAMPLING = 0.003
"""Two estimates of a percentile from 10,000 resamples differ by less."""


def test_interquartile_mean_by_hand() -> None:
    # A quarter of 12 is 3 at each end: 0.41, 0.55, 0.60, 0.66, 0.70, 0.78 remain.
    assert interquartile_mean(FIRST).value == pytest.approx(3.70 / 6, abs=1e-12)
    # A quarter of 3, rounded down, is 0: nothing is left out.
    assert interquartile_mean([[0.0, 0.3, 0.9]]).value == pytest.approx(0.4, abs=1e-12)
    # Tasks may have different numbers of runs: 0.2, 0.4 | 0.6, 0.8, 1.0 without 0.2 and 1.0.
    assert interquartile_mean([[0.2, 0.4], [0.6, 0.8, 1.0]]).value == pytest.approx(0.6, abs=1e-12)


def test_interval_by_hand() -> None:
    # Each task has the resamples (low, low), (low, high) twice, and (high, high). Of the 16
    # resamples of both tasks, one has only low values: 0.2 0.2 | 0.6 0.6 with the mean 0.4 of the
    # middle half, and one only high values: 0.4 0.4 | 0.8 0.8 with 0.6. Each has a probability of
    # 1/16, above 2.5 %, so these are the percentiles.
    assert interquartile_mean([[0.2, 0.4], [0.6, 0.8]]) == pytest.approx((0.5, 0.4, 0.6), abs=1e-12)


def test_probability_of_improvement_by_hand() -> None:
    # Task 1: 0.5 beats 0.4 and ties with 0.5, 0.3 beats none: (1 + 1/2) / 4. Task 2: all, 1.
    found = probability_of_improvement([[0.5, 0.3], [0.9, 0.8]], [[0.4, 0.5], [0.1, 0.2]])
    assert found.value == pytest.approx((0.375 + 1) / 2, abs=1e-12)
    equal = probability_of_improvement([[0.5, 0.5]], [[0.5, 0.5]])
    assert equal == (0.5, 0.5, 0.5)


def test_performance_profile_by_hand() -> None:
    found = performance_profile([[0.2, 0.4], [0.6, 0.8]], [0.1, 0.4, 0.7, 0.8])
    assert found.shares.tolist() == [1.0, 0.5, 0.25, 0.0]  # above, not equal
    # At 0.7 task 2 alone decides: 0, 1 or 2 of its two runs are 0.8, each end with 1/4.
    assert (found.low.tolist(), found.high.tolist()) == ([1, 0.5, 0, 0], [1, 0.5, 0.5, 0])


def test_intervals_are_those_of_rliable() -> None:
    # rliable 1.2.0: get_interval_estimates with aggregate_iqm, 50,000 resamples.
    assert interquartile_mean(FIRST) == near(0.616667, 0.561667, 0.668333)
    assert interquartile_mean(SECOND) == near(0.575, 0.515, 0.631667)
    # With probability_of_improvement and the difference of aggregate_iqm, 20,000 resamples.
    assert probability_of_improvement(FIRST, SECOND) == near(0.722222, 0.5, 0.916667)
    assert difference_of_means(FIRST, SECOND) == near(0.041667, -0.036708, 0.12)
    # create_performance_profile, 20,000 resamples.
    found = performance_profile(FIRST, [0.2, 0.35, 0.58, 0.7, 0.85])
    assert found.shares == pytest.approx([11 / 12, 0.75, 7 / 12, 1 / 3, 1 / 6], abs=1e-12)
    assert found.low.tolist() == [0.75, 0.75, 0.5, 0.25, 0.0]
    assert found.high.tolist() == [1.0, 0.75, 0.75, 0.5, 0.25]


def near(value: float, low: float, high: float) -> Any:
    return pytest.approx((value, low, high), abs=RESAMPLING)


def test_difference_of_equal_scores_is_zero() -> None:
    found = difference_of_means(FIRST, FIRST)
    assert found.value == 0
    assert found.low < 0 < found.high
    assert difference_of_means(FIRST, SECOND).value == pytest.approx(3.70 / 6 - 0.575, abs=1e-12)


def test_single_run_gives_no_interval() -> None:
    found = interquartile_mean([[0.2], [0.6, 0.8]])
    assert found.value == pytest.approx(1.6 / 3, abs=1e-12)
    assert math.isnan(found.low)
    assert math.isnan(probability_of_improvement([[0.2]], [[0.1, 0.3]]).high)
    assert np.isnan(performance_profile([[0.2]], [0.1]).low).all()


def test_scores_of_no_task_or_of_other_tasks_raise() -> None:
    empty: list[list[list[float]]] = [[], [[]], [[0.1], []]]
    for scores in empty:
        with pytest.raises(ValueError, match="at least one score"):
            interquartile_mean(scores)
    with pytest.raises(ValueError, match="same tasks"):
        difference_of_means(FIRST, SECOND[:2])
