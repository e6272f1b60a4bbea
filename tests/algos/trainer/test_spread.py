"""Tests the warning about a run in which the rewards of no group differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import RolloutConfig, SavingConfig, Trainer, TrainerConfig
from visenv.algos.trainer.diagnostics import spread_warnings

TWO = TrainerConfig(
    steps=2, rollouts=RolloutConfig(prompts_per_step=2, num_generations=4, max_tokens=3)
)


class Impossible(gym.RewardWrapper[Any, Any]):
    """Pays nothing, whatever the policy does."""

    @override
    def reward(self, reward: Any) -> Any:
        return 0.0


def write(path: Path, *rows: Mapping[str, float]) -> Path:
    path.write_text(
        "".join(json.dumps({"step": step, **row}) + "\n" for step, row in enumerate(rows, 1))
    )
    return path


@pytest.mark.component("torch", "tensorboard")
def test_run_without_a_spread_of_rewards_ends_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = toy.ToyPolicy()
    Trainer(policy, GRPO(), TWO, folder=tmp_path / "run").train(lambda: Impossible(toy.Echo()))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Warning: No group had different rewards in any of 2 steps")
    assert "temperature" in last
    assert "num_generations" in last


class LatePay(gym.RewardWrapper[Any, Any]):
    """Pays for good turns only after `free` turns."""

    free = 0

    @override
    def reward(self, reward: Any) -> Any:
        LatePay.free -= 1
        return reward if LatePay.free < 0 else 0.0


@pytest.mark.component("torch", "tensorboard")
def test_run_without_a_spread_is_reported_after_ten_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(TWO, steps=12)
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run", stage="rl").train(
        lambda: Impossible(toy.Echo())
    )
    lines = capsys.readouterr().err.splitlines()
    (warned,) = [place for place, line in enumerate(lines) if line.startswith("Warning: ")]
    assert "in any of 10 steps" in lines[warned]
    (tenth,) = [place for place, line in enumerate(lines) if line.startswith("GRPO 10/12")]
    (last,) = [place for place, line in enumerate(lines) if line.startswith("GRPO 12/12")]
    assert tenth < warned < last


@pytest.mark.component("torch", "tensorboard")
def test_resumed_run_counts_the_steps_before_the_interruption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(steps: int, *, resume: bool) -> str:
        config = replace(TWO, steps=steps, saving=SavingConfig(checkpoint_every=4))
        trainer = Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run", resume=resume)
        trainer.train(lambda: Impossible(toy.Echo()))
        return capsys.readouterr().err

    assert "in any of 10 steps" not in train(4, resume=False)
    assert "in any of 10 steps" in train(12, resume=True)


@pytest.mark.component("torch", "tensorboard")
def test_run_that_gets_a_spread_in_its_first_steps_is_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LatePay.free = 5 * 6 * 8 * 2  # the turns of five steps
    rollouts = RolloutConfig(prompts_per_step=6, num_generations=8, max_tokens=3)
    config = TrainerConfig(steps=11, rollouts=rollouts)
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run").train(
        lambda: LatePay(toy.Echo())
    )
    assert "Warning" not in capsys.readouterr().err


@pytest.mark.component("torch", "tensorboard")
def test_run_with_a_spread_of_rewards_has_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rollouts = RolloutConfig(prompts_per_step=6, num_generations=8, max_tokens=3)
    config = TrainerConfig(steps=8, rollouts=rollouts)
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run").train(toy.Echo)
    assert "Warning" not in capsys.readouterr().err


def test_group_with_a_spread_is_enough(tmp_path: Path) -> None:
    flat = {"groups/zero_std": 1.0, "reward": 0.25}
    (warning,) = spread_warnings(write(tmp_path / "a", flat, flat))
    assert "mean reward 0.25" in warning
    assert spread_warnings(write(tmp_path / "b", flat, flat | {"groups/zero_std": 0.9})) == []
    assert spread_warnings(write(tmp_path / "c", {"reward": 1.0})) == []


def test_mixture_names_the_environment_without_a_spread(tmp_path: Path) -> None:
    row = {
        "groups/zero_std": 0.5,
        "env/a/groups/zero_std": 1.0,
        "env/a/kind/x/groups/zero_std": 1.0,
        "env/b/groups/zero_std": 0.0,
    }
    (warning,) = spread_warnings(write(tmp_path / "a", row, row))
    assert warning.startswith("No group of a had different rewards in any of 2 steps")
