"""Tests the trainer with a small, real vision-language model in a small, real environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.algos.runs import metrics
from tests.tiny_models import tiny_model
from visenv.algos.policy_gradient import GRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.registration import load
from visenv.rollout import Collector

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def _make_env() -> Any:
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def _policy(model: Path) -> Any:
    return load("policy", "transformers")(model, threads=1)


def _weights(policy: Any) -> list[bytes]:
    return [each.detach().numpy().tobytes() for each in policy.parameters()]


def _config(steps: int) -> TrainerConfig:
    optimization = OptimizationConfig(learning_rate=1e-3, tokens_per_batch=600)
    return TrainerConfig(
        steps, rollouts=RolloutConfig(2, 3, max_tokens=6), optimization=optimization
    )


def test_grpo_on_policy_then_resumed_to_the_bit(model: Path, tmp_path: Path) -> None:
    straight = _policy(model)
    Trainer(straight, GRPO(), _config(2), folder=tmp_path / "straight").train(_make_env)
    for row in metrics(tmp_path / "straight"):
        # the same weights sampled and scored, so the ratio is 1 up to rounding
        assert row["ratio"] == pytest.approx(1, abs=1e-4)
        assert row["clip_low"] == row["clip_high"] == 0

    Trainer(_policy(model), GRPO(), _config(1), folder=tmp_path / "twice").train(_make_env)
    resumed = _policy(model)
    again = Trainer(resumed, GRPO(), _config(2), folder=tmp_path / "twice", resume=True)
    again.train(_make_env)
    assert _weights(resumed) == _weights(straight)
    assert metrics(tmp_path / "twice") == metrics(tmp_path / "straight")


def test_sft_on_oracle_episodes_lowers_the_loss(model: Path, tmp_path: Path) -> None:
    policy = _policy(model)
    before = _weights(policy)
    groups = Collector(_make_env, load("policy", "oracle")()).groups(range(4))
    episodes = [policy.encode(episode) for (episode,) in groups]
    trainer = Trainer(policy, SFT(), _config(4), folder=tmp_path / "sft")
    trainer.fit(episodes, batch_size=4)
    losses = [row["loss"] for row in metrics(tmp_path / "sft")]
    assert losses[3] < losses[0] - 0.5
    assert all(one != other for one, other in zip(before, _weights(policy), strict=True))
