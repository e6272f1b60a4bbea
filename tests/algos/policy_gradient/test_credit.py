"""Tests credit of turns against hand-worked values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.algos.policy_gradient import GRPO
from visenv.algos.policy_gradient.advantage import (
    by_episode,
    by_state,
    by_turn,
    returns_to_go,
    sampled_tokens,
)


def test_returns_to_go(make_episode: Any) -> None:
    played = make_episode([1.0, 0.0, 2.0])
    assert returns_to_go(played).tolist() == [3.0, 2.0, 2.0]
    # from the last turn: 2; 0 + .5 · 2 = 1; 1 + .5 · 1 = 1.5
    assert returns_to_go(played, 0.5).tolist() == [1.5, 1.0, 2.0]
    assert returns_to_go(make_episode([])).shape == (0,)


def test_turns_of_a_group_are_compared_together(make_episode: Any) -> None:
    # returns 3, 1 and 2 with mean 2: +1, -1 and 0, with sample variance 2 / 2 = 1
    group = [make_episode([2.0, 1.0]), make_episode([2.0])]
    assert [each.tolist() for each in by_turn([group], "none", 1.0)[0]] == [[1.0, -1.0], [0.0]]
    first, second = by_turn([group], "group", 1.0)[0]
    assert first == pytest.approx([1 / 1.0001, -1 / 1.0001], abs=1e-12)
    assert second.tolist() == [0.0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the fixture has no state
@given(rewards=st.lists(st.floats(-10, 10), min_size=1, max_size=5), turns=st.integers(1, 4))
def test_reward_at_the_end_of_equal_episodes_is_credit_by_episode(
    make_episode: Any, rewards: list[float], turns: int
) -> None:
    group = [make_episode([0.0] * (turns - 1) + [reward]) for reward in rewards]
    turnwise, whole = by_turn([group], "none", 1.0)[0], by_episode([group], "none")[0]
    for advantages, advantage in zip(turnwise, whole, strict=True):
        assert advantages == pytest.approx(np.full(turns, advantage), abs=1e-9)


def test_turns_in_one_state_are_compared(make_episode: Any) -> None:
    # The episodes have rewards 3 and 1 with mean 2, so +1 and -1 for all turns. In "hall" the
    # returns to go are 3, 1 (the first episode, twice) and 1: mean 5/3, so 4/3, -2/3 and -2/3.
    # "attic" occurs once.
    group = [
        make_episode([2.0, 1.0], shown=["hall", "hall"]),
        make_episode([1.0, 0.0], shown=["hall", "attic"]),
    ]
    first, second = by_state([group], "none", 1.0, 0.5)[0]
    assert first == pytest.approx([1 + 2 / 3, 1 - 1 / 3], abs=1e-12)
    assert second == pytest.approx([-1 - 1 / 3, -1.0], abs=1e-12)


def test_states_of_other_groups_are_other_states(make_episode: Any) -> None:
    # each group separately: ±.5 and ±1 for the episodes, and the same again for their "hall"
    groups = [
        [make_episode([reward], shown=["hall"]) for reward in rewards]
        for rewards in ((1.0, 0.0), (3.0, 1.0))
    ]
    given = by_state(groups, "none", 1.0, 1.0)
    assert [[each.tolist() for each in row] for row in given] == [[[1.0], [-1.0]], [[2.0], [-2.0]]]


def test_tokens_of_turns(make_episode: Any) -> None:
    assert sampled_tokens(make_episode([1.0, 0.0], tokens=[3, 2])).tolist() == [3, 2]
    assert sampled_tokens(make_episode([1.0, 0.0])).tolist() == [0, 0]


@pytest.mark.parametrize("credit", ["episode", "turn", "state"])
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_credits_have_their_shape_and_are_zero_at_equal_rewards(
    make_episode: Any, credit: Any, scale: Any
) -> None:
    group = [make_episode([0.0, 0.3]), make_episode([0.3]), make_episode([0.0, 0.0, 0.3])]
    given = GRPO(credit=credit, scale=scale).advantages([group, [], [group[0]]])
    assert [len(each) for each in given] == [3, 0, 1]
    shapes = [()] * 3 if credit == "episode" else [(2,), (1,), (3,)]
    assert [each.shape for each in given[0]] == shapes
    assert not any(each.any() for row in given for each in row)
