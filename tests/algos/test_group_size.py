"""Tests the theory of group sizes: golden values, the counterexample, and estimates."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.algos.group_size import (
    approximate_group_size,
    best_group_size,
    estimate_beta,
    estimate_sigma,
    exploitation_rate,
    gated_bound,
    pareto_bound,
    pareto_optimal,
    plan_group_size,
)
from visenv.errors import ConfigurationError


@pytest.mark.parametrize(
    ("beta", "cm", "size", "bound", "approximation"),
    [(0.1, 4, 16, 0.5909, 18.66), (0.3, 3, 5, 0.6663, 6.50), (0.05, 5, 37, 0.6439, 42.61)],
)
def test_golden_values(
    beta: float, cm: float, size: int, bound: float, approximation: float
) -> None:
    assert best_group_size(beta, cm) == size
    assert pareto_bound(size, beta, cm) == pytest.approx(bound, abs=5e-5)
    assert approximate_group_size(beta, cm) == pytest.approx(approximation, abs=5e-3)


@given(st.floats(0.005, 1.0), st.floats(0.05, 7.0))
def test_best_size_is_that_of_a_search_over_all(beta: float, cm: float) -> None:
    bounds = [pareto_bound(n, beta, cm) for n in range(1, math.ceil(math.exp(cm)) + 3)]
    assert pareto_bound(best_group_size(beta, cm), beta, cm) == pytest.approx(max(bounds))


def test_bound_is_never_negative() -> None:
    assert pareto_bound(100, 0.5, 1.0) == 0.0
    assert pareto_bound(1, 0.25, 1.0) == 0.25
    assert best_group_size(0.0, 3.0) == 1


def test_rate_is_that_of_the_definition() -> None:
    # delta^2 w_min^2 m / (4 sigma^2 w_max^2) = 0.04 * 1 * 3 / (4 * 0.01 * 4)
    assert exploitation_rate(0.2, 0.1, 3, [1.0, 2.0, 1.5]) == pytest.approx(0.75)
    assert exploitation_rate(0.2, 0.1, 3) == pytest.approx(3.0)


def test_gated_bound_by_hand() -> None:
    # n = 2, beta = 0.5, C m = 2, m = 2, gamma / sigma = 2: 0.75 * (1 - 2 e^-2) * (1 - e^-3)
    expected = 0.75 * (1 - 2 * math.exp(-2)) * (1 - math.exp(-3))
    assert gated_bound(2, 0.5, 2.0, 2, 2.0) == pytest.approx(expected)
    assert gated_bound(100, 0.5, 2.0, 2, 2.0) == 0.0


def test_counterexample_breaks_the_bound() -> None:
    components, delta = 4, 1.0
    sigma = math.sqrt(delta**2 * components / 12)  # C m = 3
    rewards = np.array([[0.0], [-0.99 * delta], [-delta]]).repeat(components, axis=1)
    assert pareto_optimal(rewards, delta).tolist() == [True, True, False]
    with pytest.warns(UserWarning, match="Trust the simulation"):
        plan = plan_group_size(
            rewards,
            sigma=sigma,
            delta=delta,
            probabilities=[0.0, 0.3, 0.7],
            sizes=[2],
            trials=400_000,
        )
    assert plan.cm == pytest.approx(3.0)
    assert plan.beta == pytest.approx(0.3)
    assert plan.bounds[0] == pytest.approx(0.4846, abs=5e-5)
    assert plan.simulated[0] == pytest.approx(0.3041, abs=0.003)  # four standard deviations
    assert plan.is_bound_violated
    # By hand: both are optimal, or one is and wins a noisy comparison of means 0.01 delta apart.
    z = 0.01 * delta * components / (sigma * math.sqrt(2 * components))
    exact = 0.09 + 0.42 * 0.5 * (1 + math.erf(z / math.sqrt(2)))
    assert exact == pytest.approx(0.3041, abs=5e-5)


def test_plan_keeps_quiet_where_the_bound_holds() -> None:
    rewards = np.array([[1.0, 1.0], [0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = plan_group_size(rewards, sigma=0.2, delta=0.5, sizes=[1, 2, 4, 8])
    assert plan.simulated == tuple(sorted(plan.simulated))
    assert plan.size == 8
    assert plan.beta == 0.5
    assert not plan.is_bound_violated


def test_plan_takes_the_smallest_size_within_the_error_of_the_best() -> None:
    # The noise hides the rewards: each size finds the better response in half of the trials.
    plan = plan_group_size([[1.0, 1.0], [0.0, 0.0]], sigma=1000.0, delta=0.5)
    assert plan.simulated[0] < max(plan.simulated)
    assert plan.size == 1


@pytest.mark.parametrize("cm", [709.0, 1000.0, 1e6])
def test_approximation_of_a_large_rate_is_finite(cm: float) -> None:
    # ln(1 + x) is ln(x) for a large x, and ln(beta e^cm) is cm + ln(beta).
    assert approximate_group_size(0.5, cm) == pytest.approx((cm + math.log(0.5)) / 0.5)
    assert best_group_size(0.5, cm) >= 1


def test_beta_is_overestimated_from_small_groups() -> None:
    # One response in four is right. In pairs, a wrong response is undominated if the other is
    # wrong.
    groups: list[list[dict[str, float | None]]] = [
        [{"accuracy": float(a == 0)}, {"accuracy": float(b == 0)}]
        for a in range(4)
        for b in range(4)
    ]
    # No other member dominates both members of the 9 pairs without a right answer (18), the right
    # member of the 6 mixed pairs (6), and both members of the pair of two right answers (2).
    assert estimate_beta(groups, 0.5) == (18 + 6 + 2) / 32


def test_beta_is_the_share_that_no_member_dominates() -> None:
    groups: list[list[dict[str, float | None]]] = [
        [{"accuracy": 1.0, "spatial": 1.0}, {"accuracy": 0.0, "spatial": None}],
        [{"accuracy": 1.0, "spatial": 0.0}, {"accuracy": 1.0, "spatial": 1.0}],
    ]
    # In the second group no member is better in every component.
    assert estimate_beta(groups, 0.5) == 0.75


def test_sigma_is_found_again() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(20_000)
    first, second = (truth + rng.normal(0, 0.3, truth.shape) for _ in range(2))
    assert estimate_sigma(first.tolist(), second.tolist()) == pytest.approx(0.3, abs=0.01)
    assert estimate_sigma([1.0, 0.0], [1.0, 0.0]) == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: pareto_bound(0, 0.5, 1.0),
        lambda: pareto_bound(1, 1.5, 1.0),
        lambda: pareto_bound(1, 0.5, 0.0),
        lambda: pareto_bound(1, 0.5, math.nan),
        lambda: exploitation_rate(0.0, 1.0, 2),
        lambda: plan_group_size([], sigma=1.0, delta=1.0),
        lambda: estimate_sigma([1.0], []),
        lambda: estimate_beta([], 0.5),
        lambda: estimate_beta([[{"accuracy": math.nan}]], 0.5),
        lambda: estimate_beta([[{"accuracy": 1.0}]], 0.0),
        lambda: estimate_sigma([math.nan], [1.0]),
        lambda: approximate_group_size(0.0, 3.0),
        lambda: approximate_group_size(0.5, math.inf),
        lambda: best_group_size(math.nan, 3.0),
        lambda: pareto_bound(1.5, 0.5, 1.0),  # type: ignore[arg-type]
        lambda: gated_bound(2, 0.5, 1.0, 0, 1.0),
        lambda: gated_bound(2, 0.5, 1.0, 2, math.nan),
        lambda: exploitation_rate(1.0, 1.0, 2, [1.0]),
        lambda: exploitation_rate(1.0, 1.0, 2, [1.0, 0.0]),
        lambda: exploitation_rate(1e200, 1e-200, 2),
        lambda: pareto_optimal([[math.nan]], 0.5),
        lambda: plan_group_size([["a"]], sigma=1.0, delta=1.0),
        lambda: plan_group_size([[math.inf]], sigma=1.0, delta=1.0),
        lambda: plan_group_size([[1.0], [0.0]], sigma=math.nan, delta=1.0),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, probabilities=[0.5, 0.4]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, probabilities=[1.5, -0.5]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, probabilities=[1.0]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, weights=[1.0, 1.0]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, sizes=[]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, sizes=[0, 2]),
        lambda: plan_group_size([[1.0], [0.0]], sigma=1.0, delta=1.0, trials=0),
    ],
)
def test_functions_refuse_invalid_arguments(call: object) -> None:
    with pytest.raises(ConfigurationError):
        call()  # type: ignore[operator]
