"""Provides runs of the trainer with tiny models, for tests of packed and of other models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.algos.runs import metrics
from visenv.algos.policy_gradient import GRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.registration import load
from visenv.rollout import Collector


def policy_of(model: Path) -> Any:
    """Return a policy of a checkpoint that computes with one thread."""
    return load("policy", "transformers")(model, threads=1)


def weights_of(policy: Any) -> list[bytes]:
    """Return the bytes of each parameter."""
    return [weight.detach().numpy().tobytes() for weight in policy.parameters()]


def make_scenes() -> Any:
    """Make ZoomVQA with the preset ``tiny``."""
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def short_run(
    steps: int, groups: int = 1, num_generations: int = 2, tokens_per_batch: int = 6000
) -> TrainerConfig:
    """Return the settings of a run whose turns have at most six tokens."""
    return TrainerConfig(
        steps,
        rollouts=RolloutConfig(groups, num_generations, max_tokens=6),
        optimization=OptimizationConfig(learning_rate=1e-3, tokens_per_batch=tokens_per_batch),
    )


def check_grpo_resumes(
    model: Path, make_env: Callable[[], Any], config: Callable[[int], TrainerConfig], folder: Path
) -> None:
    """Check two steps of GRPO on policy, and that a run that is resumed after one is equal.

    The runs are in the subfolders ``straight`` and ``twice``.

    Args:
        model: The checkpoint.
        make_env: Makes the environment.
        config: Returns the settings of a run with a number of steps.
        folder: The parent of the folders of the runs.
    """
    straight = policy_of(model)
    Trainer(straight, GRPO(), config(2), folder=folder / "straight").train(make_env)
    for row in metrics(folder / "straight"):
        # the same weights sampled and scored, so the ratio is 1 up to rounding
        assert row["ratio"] == pytest.approx(1, abs=1e-4)
        assert row["clip_low"] == row["clip_high"] == 0

    Trainer(policy_of(model), GRPO(), config(1), folder=folder / "twice").train(make_env)
    resumed = policy_of(model)
    again = Trainer(resumed, GRPO(), config(2), folder=folder / "twice", resume=True)
    again.train(make_env)
    assert weights_of(resumed) == weights_of(straight)


def sft_losses(model: Path, make_env: Callable[[], Any], folder: Path) -> list[float]:
    """Return the losses of 5 steps of SFT on two episodes of the oracle.

    Args:
        model: The checkpoint.
        make_env: Makes the environment.
        folder: The folder of the run.
    """
    policy = policy_of(model)
    groups = Collector(make_env, load("policy", "oracle")()).groups(range(2))
    episodes = [policy.encode(episode) for (episode,) in groups]
    optimization = OptimizationConfig(learning_rate=1e-3, tokens_per_batch=6000)
    trainer = Trainer(policy, SFT(), TrainerConfig(5, optimization=optimization), folder=folder)
    trainer.fit(episodes, batch_size=2)
    return [row["loss"] for row in metrics(folder)]
