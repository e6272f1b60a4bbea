"""Provides a minimal configuration for TRL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from visenv.registration import load


@pytest.fixture
def policy(tiny: Path) -> Any:
    return load("policy", "transformers")(tiny, threads=1)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")

    def make(**changes: Any) -> Any:
        from trl.trainer.grpo_config import GRPOConfig

        small: dict[str, Any] = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 6,
            "num_generations": 3,
            "max_steps": 2,
            "learning_rate": 1e-3,
            "beta": 0.0,
            "epsilon": 0.2,
            "epsilon_high": 0.28,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": [],
            "save_strategy": "no",
            "disable_tqdm": True,
            "shuffle_dataset": False,
        }
        return GRPOConfig(**(small | changes))

    return make
