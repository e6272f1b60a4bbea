"""Tests advantages against hand-worked values and by their properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.algos.policy_gradient.advantage import group_relative, leave_one_out, whitened

REWARDS = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=16)


def test_advantages_of_two_right_of_four() -> None:
    # mean .5; sample variance 4 · .25 / 3 = 1/3, std .5773503; ±.5 / (.5773503 + .0001)
    expected = 0.5 / (0.5773502691896258 + 1e-4)
    (given,) = group_relative([[1, 0, 0, 1]])
    assert given == pytest.approx([expected, -expected, -expected, expected], abs=1e-15)
    assert expected == pytest.approx(0.8658754, abs=1e-7)


def test_advantages_of_three_different_rewards() -> None:
    # mean 1; deviations -1, 0, 1; sample variance 2 / 2 = 1; 1 / 1.0001 = .9999
    (given,) = group_relative([[0, 1, 2]])
    assert given == pytest.approx([-0.99990001, 0, 0.99990001], abs=1e-8)


def test_advantages_without_scale_lose_only_the_mean() -> None:
    (given,) = group_relative([[3, 0, 0]], scale="none")
    assert given.tolist() == [2, -1, -1]


def test_batch_s_deviation_divides_every_group() -> None:
    # all: 0, 2, 4, 6: mean 3, variance (9 + 1 + 1 + 9) / 3 = 6.6666667, std 2.5819889
    one, other = group_relative([[0, 2], [4, 6]], scale="batch")
    expected = 1 / (2.581988897471611 + 1e-4)
    assert one == pytest.approx([-expected, expected], abs=1e-15)
    assert other == pytest.approx([-expected, expected], abs=1e-15)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("rewards", [[0.1, 0.1, 0.1], [7.0], [], [0.7] * 7])
def test_advantages_without_spread_are_exactly_zero(rewards: list[float], scale: Any) -> None:
    same, _ = group_relative([rewards, [1.0, 2.0]], scale)
    assert same.tolist() == [0.0] * len(rewards)
    assert leave_one_out(rewards).tolist() == [0.0] * len(rewards)
    counts = np.full(len(rewards), 3)
    assert whitened(np.array(rewards), counts).tolist() == [0.0] * len(rewards)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@given(st.lists(REWARDS, min_size=1, max_size=4), st.floats(-1e3, 1e3))
def test_advantages_sum_to_zero_and_ignore_a_shift_of_all(
    scale: Any, groups: list[list[float]], shift: float
) -> None:
    advantages = group_relative(groups, scale)
    moved = group_relative([[reward + shift for reward in group] for group in groups], scale)
    for one, other in zip(advantages, moved, strict=True):
        assert one.sum() == pytest.approx(0, abs=1e-6)
        assert other == pytest.approx(one, abs=1e-6)


@given(REWARDS, st.floats(0.5, 100))
def test_scaled_rewards_scale_what_is_not_normalized(rewards: list[float], by: float) -> None:
    more = [reward * by for reward in rewards]
    (once,), (scaled,) = group_relative([rewards], "none"), group_relative([more], "none")
    assert scaled == pytest.approx(once * by, rel=1e-9, abs=1e-9)
    assert leave_one_out(more) == pytest.approx(leave_one_out(rewards) * by, rel=1e-9, abs=1e-9)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=16), st.floats(1, 100))
def test_scaled_rewards_hardly_change_what_is_normalized(rewards: list[int], by: float) -> None:
    # only the 1e-4 in the divisor is not scaled; the deviation of distinct integers is at least .25
    (once,) = group_relative([rewards])
    (scaled,) = group_relative([[reward * by for reward in rewards]])
    assert scaled == pytest.approx(once, rel=1e-3, abs=1e-12)


@given(REWARDS, st.randoms(use_true_random=False))
def test_order_of_a_group_does_not_matter(rewards: list[float], random: Any) -> None:
    order = list(range(len(rewards)))
    random.shuffle(order)
    mixed = [rewards[place] for place in order]
    (straight,) = group_relative([rewards])
    assert group_relative([mixed])[0] == pytest.approx(straight[order], abs=1e-6)
    assert leave_one_out(mixed) == pytest.approx(leave_one_out(rewards)[order], abs=1e-6)


def test_leaving_one_out() -> None:
    # the means of the others are (0 + .5) / 2 = .25, (1 + .5) / 2 = .75 and .5
    assert leave_one_out([1, 0, 0.5]) == pytest.approx([0.75, -0.75, 0.0], abs=1e-15)


@given(REWARDS)
def test_leave_one_out_subtracts_the_mean_of_the_others(rewards: list[float]) -> None:
    for place, advantage in enumerate(leave_one_out(rewards)):
        others = rewards[:place] + rewards[place + 1 :]
        assert advantage == pytest.approx(rewards[place] - np.mean(others), abs=1e-9)


def test_whitening_by_hand() -> None:
    # three tokens of 1, one of 5: mean 2; variance (3 · 1 + 9) / 3 = 4; -1 / 2 and 3 / 2
    given = whitened(np.array([1.0, 5.0]), np.array([3, 1]))
    assert given == pytest.approx([-0.5, 1.5], abs=1e-8)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(0, 9)), min_size=1, max_size=9))
def test_whitening_is_that_of_the_tokens(turns: list[tuple[float, int]]) -> None:
    values, counts = np.array([value for value, _ in turns]), np.array([n for _, n in turns])
    tokens = np.repeat(values, counts)
    expected = np.zeros(len(values))
    if len(tokens) and tokens.min() != tokens.max():
        expected = (values - tokens.mean()) / np.sqrt(tokens.var(ddof=1) + 1e-8)
    assert whitened(values, counts) == pytest.approx(expected, rel=1e-6, abs=1e-6)
