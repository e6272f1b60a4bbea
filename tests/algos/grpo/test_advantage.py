"""Advantages by hand, by property, and by TRL's own code."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.algos.grpo.advantage import group_relative

rewards_of_groups = st.lists(
    st.lists(st.floats(-10, 10, width=32), min_size=3, max_size=3), min_size=1, max_size=5
)


def test_two_of_four_right() -> None:
    # mean .5; sample variance 4 · .25 / 3 = 1/3, std .5773503; ±.5 / (.5773503 + .0001)
    expected = 0.5 / (0.5773502691896258 + 1e-4)
    assert group_relative([1, 0, 0, 1]) == pytest.approx(
        [expected, -expected, -expected, expected], abs=1e-15
    )
    assert expected == pytest.approx(0.8658754, abs=1e-7)


def test_three_different_rewards() -> None:
    # mean 1; deviations -1, 0, 1; sample variance 2 / 2 = 1; 1 / 1.0001 = .9999
    assert group_relative([0, 1, 2]) == pytest.approx([-0.99990001, 0, 0.99990001], abs=1e-8)


def test_without_scale_only_the_mean_goes() -> None:
    assert group_relative([3, 0, 0], scale="none").tolist() == [2, -1, -1]


@pytest.mark.parametrize("rewards", [[0.1, 0.1, 0.1], [7.0], [], [0.7] * 7])
def test_no_spread_gives_exactly_zero(rewards: list[float]) -> None:
    assert group_relative(rewards).tolist() == [0.0] * len(rewards)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=16), st.floats(-1e3, 1e3))
def test_they_sum_to_zero_and_ignore_a_shift(rewards: list[float], shift: float) -> None:
    advantages = group_relative(rewards)
    assert advantages.sum() == pytest.approx(0, abs=1e-6)
    moved = group_relative([reward + shift for reward in rewards])
    assert moved == pytest.approx(advantages, abs=1e-6)


@cache
def _trl_code() -> tuple[CodeType, dict[str, Any]]:
    """The statements of TRL's `_generate_and_score_completions` that make advantages, as they are.

    They are a few lines in the middle of a method that samples; nothing smaller can be called.
    """
    from trl.trainer import grpo_trainer

    method = grpo_trainer.GRPOTrainer._generate_and_score_completions
    (branch,) = (
        node
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method))))
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == "self.multi_objective_aggregation == 'sum_then_normalize'"
    )
    return compile(ast.Module([branch], []), "trl", "exec"), vars(grpo_trainer)


def _trl_advantages(groups: list[list[float]], scale: str) -> Any:
    import torch

    stand_in = SimpleNamespace(
        multi_objective_aggregation="sum_then_normalize",
        reward_weights=torch.ones(1, dtype=torch.float64),
        scale_rewards=scale,
    )
    rewards = torch.tensor(groups, dtype=torch.float64).reshape(-1, 1)
    names: dict[str, Any] = {
        "self": stand_in,
        "rewards_per_func": rewards,
        "unscorable_mask": torch.zeros(len(rewards), dtype=torch.bool),
        "num_generations": len(groups[0]),
        "device": "cpu",
    }
    code, module = _trl_code()
    exec(code, module, names)  # noqa: S102
    return names["advantages"].reshape(len(groups), -1).numpy()


@pytest.mark.component("trl", "torch")
@pytest.mark.parametrize("scale", ["group", "none"])
@settings(deadline=None, max_examples=50)  # the first example imports TRL
@given(groups=rewards_of_groups)
def test_trl_agrees(scale: Any, groups: list[list[float]]) -> None:
    ours = np.stack([group_relative(group, scale) for group in groups])
    assert np.abs(ours - _trl_advantages(groups, scale)).max() <= 1e-6
