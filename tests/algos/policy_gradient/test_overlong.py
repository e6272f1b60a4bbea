"""Tests penalties and masks for episodes that are too long or truncated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from visenv.algos.policy_gradient import DAPO
from visenv.algos.policy_gradient.advantage import punished, soft_punishment, was_cut_off


@pytest.mark.parametrize(
    ("length", "expected"),
    # limit 100, buffer 20: 0 up to 80; (80 - 85) / 20 = -.25; -1 from 100 on
    [(0, 0.0), (80, 0.0), (85, -0.25), (90, -0.5), (100, -1.0), (300, -1.0)],
)
def test_soft_punishment(length: int, expected: float) -> None:
    assert soft_punishment(length, 100, 20) == expected


def test_last_turn_is_punished(make_episode: Any) -> None:
    played = make_episode([0.5, 1.0], tokens=[6, 3])
    # 9 tokens, limit 10, buffer 4: (6 - 9) / 4 = -.75, times 2; 1 - 1.5 = -.5
    assert [turn.reward for turn in punished(played, 10, 4, 2.0).turns] == [0.5, -0.5]
    assert punished(played, 20, 4, 2.0) is played


def test_advantages_know_of_the_punishment(make_episode: Any) -> None:
    group = [make_episode([1.0], tokens=[8]), make_episode([1.0], tokens=[10])]
    assert [float(each) for each in DAPO().advantages([group])[0]] == [0.0, 0.0]
    algorithm = DAPO(scale="none", overlong_limit=10, overlong_buffer=2, overlong_penalty=0.5)
    # rewards 1 and .5 with mean .75
    assert [float(each) for each in algorithm.advantages([group])[0]] == [0.25, -0.25]
    assert group[1].reward == 1.0


@pytest.mark.parametrize(
    ("finish", "status", "expected"),
    [
        ("stop", "terminated", False),
        ("length", "terminated", True),
        ("stop", "truncated", True),
    ],
)
def test_cut_off_episodes_are_recognized(
    make_episode: Any, finish: Any, status: Any, expected: bool
) -> None:
    assert was_cut_off(make_episode([0.0], finish=finish, status=status)) is expected


@pytest.mark.parametrize("credit", ["episode", "turn"])
def test_masked_episode_teaches_nothing_and_counts_in_its_group(
    make_episode: Any, credit: Any
) -> None:
    group = [make_episode([3.0]), make_episode([0.0], status="truncated"), make_episode([0.0])]
    algorithm = DAPO(scale="none", mask_truncated=True, credit=credit)
    given = algorithm.advantages([group])[0]
    assert [each.reshape(()).item() for each in given] == [2.0, 0.0, -1.0]
    assert all(np.asarray(each).dtype == np.float64 for each in given)
