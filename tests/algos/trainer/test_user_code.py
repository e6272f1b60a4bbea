"""Tests that a bug in a user's environment stops a training run at the first episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import RolloutConfig, Trainer, TrainerConfig
from visenv.errors import CodeError

pytestmark = pytest.mark.component("torch", "tensorboard")

CONFIG = TrainerConfig(
    steps=2, rollouts=RolloutConfig(prompts_per_step=2, num_generations=4, max_tokens=3)
)


class Broken(gym.RewardWrapper[Any, Any]):
    """Has a bug in its reward."""

    @override
    def reward(self, reward: Any) -> Any:
        return reward.value


def test_bug_stops_training_at_the_first_episode(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path / "run")
    with pytest.raises(CodeError) as caught:
        trainer.train(lambda: Broken(toy.Echo()))
    assert str(caught.value).startswith("The environment Broken has a bug: AttributeError: ")
    assert f"({__file__}, line " in str(caught.value)
    assert "Traceback" not in caplog.text
