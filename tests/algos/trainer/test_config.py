"""Tests configurations: errors name invalid fields; learning rates match hand-worked values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from visenv.algos.trainer.config import (
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    TrainerConfig,
    learning_rate,
)
from visenv.errors import ConfigurationError


@pytest.mark.parametrize(
    ("made", "name", "value"),
    [
        (RolloutConfig, "prompts_per_step", 0),
        (RolloutConfig, "num_generations", -1),
        (RolloutConfig, "max_tokens", 0),
        (RolloutConfig, "concurrency", 0),
        (RolloutConfig, "temperature", 0.0),
        (RolloutConfig, "temperature", math.nan),
        (OptimizationConfig, "learning_rate", -1e-6),
        (OptimizationConfig, "learning_rate", math.nan),
        (OptimizationConfig, "learning_rate", math.inf),
        (OptimizationConfig, "warmup_steps", -1),
        (OptimizationConfig, "beta1", 1.0),
        (OptimizationConfig, "beta2", -0.1),
        (OptimizationConfig, "weight_decay", -0.1),
        (OptimizationConfig, "max_grad_norm", 0.0),
        (OptimizationConfig, "num_epochs", 0),
        (OptimizationConfig, "num_minibatches", 0),
        (OptimizationConfig, "tokens_per_batch", 0),
        (SavingConfig, "checkpoint_every", 0),
        (SavingConfig, "keep_checkpoints", 0),
        (SavingConfig, "episodes_every", 0),
        (TrainerConfig, "steps", 0),
        (TrainerConfig, "seed", -1),
    ],
)
def test_config_refuses_an_invalid_value_by_name(made: Any, name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} must be .*{value}"):
        made(**{name: value})


def test_schedule_that_is_unknown_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"'constant', 'linear', 'cosine'.*'step'"):
        OptimizationConfig(schedule="step")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # 2 warm-up steps of 6: ½, 1, then the schedule at progress 0, ¼, ½, ¾ of the remaining
        # steps
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 0.75, 0.5, 0.25]),
        # (1 + cos(π/4)) / 2 = .853553, (1 + cos(3π/4)) / 2 = .146447
        ("cosine", [0.5, 1, 1, 0.853553, 0.5, 0.146447]),
    ],
)
def test_learning_rates_by_hand(schedule: Any, expected: list[float]) -> None:
    optimization = OptimizationConfig(learning_rate=2.0, schedule=schedule, warmup_steps=2)
    rates = [learning_rate(optimization, step, 6) for step in range(6)]
    assert rates == pytest.approx([2 * each for each in expected], abs=1e-5)


def test_run_may_be_all_warm_up() -> None:
    optimization = OptimizationConfig(learning_rate=1.0, schedule="linear", warmup_steps=4)
    assert [learning_rate(optimization, step, 2) for step in range(2)] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("made", "name", "value"),
    [
        (RolloutConfig, "episode_retries", -1),
        (RolloutConfig, "engine_restarts", -1),
        (RolloutConfig, "max_staleness", -1),
        (OptimizationConfig, "patches_per_batch", 0),
        (OptimizationConfig, "ref_sync_steps", 0),
        (OptimizationConfig, "max_grad_norm_ratio", 0.5),
        (OptimizationConfig, "max_grad_norm_ratio", math.nan),
        (TrainerConfig, "timeout", 0),
    ],
)
def test_engine_settings_refuse_an_invalid_value_by_name(
    made: Any, name: str, value: float
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} must be .*{value}"):
        made(**{name: value})


def test_old_logprobs_has_two_values() -> None:
    with pytest.raises(ConfigurationError, match=r"'sampler', 'trainer'.*'engine'"):
        OptimizationConfig(old_logprobs="engine")  # type: ignore[arg-type]


def test_engine_that_sleeps_cannot_play_ahead() -> None:
    with pytest.raises(ConfigurationError, match="set sleep to False, or max_staleness to 0"):
        RolloutConfig(sleep=True, max_staleness=1)
