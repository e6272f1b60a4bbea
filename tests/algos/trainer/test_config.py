"""Wrong values are refused by name; learning rates by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from visenv.algos.trainer.config import (
    Optimisation,
    Rollouts,
    Saving,
    TrainerConfig,
    learning_rate,
)
from visenv.errors import ConfigurationError


@pytest.mark.parametrize(
    ("made", "name", "value"),
    [
        (Rollouts, "groups", 0),
        (Rollouts, "group_size", -1),
        (Rollouts, "max_tokens", 0),
        (Rollouts, "concurrency", 0),
        (Rollouts, "temperature", 0.0),
        (Rollouts, "temperature", math.nan),
        (Optimisation, "learning_rate", -1e-6),
        (Optimisation, "learning_rate", math.nan),
        (Optimisation, "learning_rate", math.inf),
        (Optimisation, "warmup_steps", -1),
        (Optimisation, "beta1", 1.0),
        (Optimisation, "beta2", -0.1),
        (Optimisation, "weight_decay", -0.1),
        (Optimisation, "max_grad_norm", 0.0),
        (Optimisation, "passes", 0),
        (Optimisation, "minibatches", 0),
        (Optimisation, "tokens_per_batch", 0),
        (Saving, "checkpoint_every", 0),
        (Saving, "keep_checkpoints", 0),
        (Saving, "episodes_every", 0),
        (TrainerConfig, "steps", 0),
        (TrainerConfig, "seed", -1),
    ],
)
def test_wrong_value_is_refused_by_name(made: Any, name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} must be .*{value}"):
        made(**{name: value})


def test_wrong_schedule_names_the_right_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"'constant', 'linear', 'cosine'.*'step'"):
        Optimisation(schedule="step")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # 2 warm-up steps of 6: ½, 1, then the schedule at progress 0, ¼, ½, ¾ of what is left
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 0.75, 0.5, 0.25]),
        # (1 + cos(π/4)) / 2 = .853553, (1 + cos(3π/4)) / 2 = .146447
        ("cosine", [0.5, 1, 1, 0.853553, 0.5, 0.146447]),
    ],
)
def test_learning_rates_by_hand(schedule: Any, expected: list[float]) -> None:
    optimisation = Optimisation(learning_rate=2.0, schedule=schedule, warmup_steps=2)
    rates = [learning_rate(optimisation, step, 6) for step in range(6)]
    assert rates == pytest.approx([2 * each for each in expected], abs=1e-5)


def test_run_may_be_all_warm_up() -> None:
    optimisation = Optimisation(learning_rate=1.0, schedule="linear", warmup_steps=4)
    assert [learning_rate(optimisation, step, 2) for step in range(2)] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("made", "name", "value"),
    [
        (Rollouts, "retries", -1),
        (Rollouts, "restarts", -1),
        (Rollouts, "max_staleness", -1),
        (Optimisation, "patches_per_batch", 0),
        (Optimisation, "reference_every", 0),
        (Optimisation, "spike", 0.5),
        (Optimisation, "spike", math.nan),
        (TrainerConfig, "timeout", 0),
    ],
)
def test_wrong_value_of_the_engine_is_refused_by_name(made: Any, name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} must be .*{value}"):
        made(**{name: value})


def test_old_logprobs_has_two_values() -> None:
    with pytest.raises(ConfigurationError, match=r"'sampler', 'trainer'.*'engine'"):
        Optimisation(old_logprobs="engine")  # type: ignore[arg-type]


def test_engine_that_sleeps_cannot_play_ahead() -> None:
    with pytest.raises(ConfigurationError, match="leave sleep off, or max_staleness at 0"):
        Rollouts(sleep=True, max_staleness=1)
