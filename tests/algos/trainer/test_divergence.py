"""Tests `DivergenceCheck`: non-finite values always stop a run, large gradients optionally."""

from __future__ import annotations

import math

import pytest

from visenv.algos.trainer.diagnostics import DivergenceCheck


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_infinities_are_always_a_problem(value: float) -> None:
    guard = DivergenceCheck(max_grad_norm_ratio=None)
    assert guard.problem(value, 1.0) == f"the loss is {value}"
    assert guard.problem(1.0, value) == f"the gradient is {value}"
    assert guard.problem(-1.0, 1e30) is None


def test_leap_by_hand() -> None:
    guard = DivergenceCheck(max_grad_norm_ratio=3.0)
    for norm in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0):
        guard.taken(norm)
    assert guard.problem(0.0, 1e9) is None  # nine norms are too few for a median
    guard.taken(10.0)
    # the median of 1..10 is 5.5; three times the median is 16.5
    assert guard.problem(0.0, 16.5) is None
    assert guard.problem(0.0, 22.0) == "the gradient norm is 22, 4 times its median"


def test_norms_count_up_to_the_latest_fifty_and_are_handed_on() -> None:
    guard = DivergenceCheck(max_grad_norm_ratio=2.0)
    for norm in range(100):
        guard.taken(float(norm))
    assert guard.norms == [float(norm) for norm in range(50, 100)]
    other = DivergenceCheck(max_grad_norm_ratio=2.0)
    other.remember(guard.norms)
    # the median of 50..99 is 74.5
    assert other.problem(0.0, 149.0) is None
    assert other.problem(0.0, 149.1) is not None
