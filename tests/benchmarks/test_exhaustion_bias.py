"""Tests the simulation of failed episodes: rules by hand, gradients against exact expectations."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.programs import load_program
from visenv.algos.policy_gradient import DrGRPO

pytestmark = pytest.mark.component("torch")
ALGORITHM = DrGRPO(max_tokens=1)  # linear in the rewards, so that expectations have a closed form


@pytest.fixture(scope="module")
def bias() -> ModuleType:
    return load_program("benchmarks/exhaustion_bias.py")


def test_rules_by_hand(bias: ModuleType) -> None:
    alive = np.array([[True, True, True], [True, False, True], [False, True, False]])
    assert bias.drop_member(alive).tolist() == [[True] * 3, [True, False, True], [False] * 3]
    assert bias.drop_group(alive).tolist() == [[True] * 3, [False] * 3, [False] * 3]


def test_survival_by_hand(bias: ModuleType) -> None:
    """Check three attempts: 1 - (1 - 0.5)³ and 1 - (1 - 0.25)³."""
    assert bias.survival(np.array([1, 2]), 0.5) == pytest.approx([0.875, 0.578125], abs=1e-12)


def test_gradient_of_one_group_by_hand(bias: ModuleType) -> None:
    """Check choices 1 and 3: scores -1/2 and 1/2, advantages -1/2 and 1/2, and the mean product."""
    episodes = bias.Episodes(
        np.array([[1, 3]]), np.array([[1, 9]]), np.array([[0.0, 1.0]]), np.zeros((1, 2))
    )
    outcome = bias.update(episodes, np.ones((1, 2), np.bool_), ALGORITHM)
    assert outcome.gradient == pytest.approx(0.25, abs=1e-12)
    assert outcome[1:] == (2, 1, 0.5)


def covariance(bias: ModuleType, task: Any, rate: float) -> float:
    """Return Cov(reward, score) over the episodes that survive, by enumeration.

    In a group of n episodes with the mean reward as the baseline, the mean gradient is (n - 1) / n
    times this covariance, because the mean includes the reward that is compared with it.
    """
    choices = np.arange(1, bias.TURNS + 1)
    probability = np.where(choices < bias.TURNS, 0.5**choices, 0.5 ** (choices - 1))
    assert probability.sum() == pytest.approx(1.0)
    score = 0.5 * (choices - 1) - 0.5 * (choices < bias.TURNS)
    reward = 1 - (1 - task.guess) * (1 - task.shown) ** (choices - 1)
    weight = probability * bias.survival(choices + task.further, rate)
    weight /= weight.sum()
    return float(weight @ (reward * score) - (weight @ reward) * (weight @ score))


@pytest.mark.soak
def test_gradients_agree_with_their_exact_expectation(bias: ModuleType) -> None:
    """Check that both rules learn from the same distribution, that of the episodes that survive."""
    (task,) = bias.SETTINGS["alike"]
    outcomes = bias.simulate([task], ALGORITHM, steps=300)
    share = (bias.SIZE - 1) / bias.SIZE
    for rate, rule in ((0.0, ""), (0.1, "drop_group"), (0.3, "drop_group"), (0.1, "drop_member")):
        gradients = np.array([outcome.gradient for outcome in outcomes[rate, rule]])
        error = gradients.std(ddof=1) / len(gradients) ** 0.5
        assert error < 0.02
        # Without failed members, groups are smaller: at a rate of 0.1, by 1.4 % on average.
        tolerance = 4 * error + (0.002 if rule == "drop_member" else 0.0)
        assert gradients.mean() == pytest.approx(
            share * covariance(bias, task, rate), abs=tolerance
        )
    assert covariance(bias, task, 0.3) < 0.8 * covariance(bias, task, 0.0)
