"""Tests training inside a running event loop, as in a Jupyter cell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig

pytestmark = pytest.mark.component("torch", "tensorboard")


def in_a_cell(call: Callable[[], Any]) -> Any:
    async def cell() -> Any:
        return call()

    return asyncio.run(cell())


def train(folder: Path, **options: Any) -> toy.ToyPolicy:
    config = TrainerConfig(
        steps=1,
        rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3),
        optimization=OptimizationConfig(learning_rate=0.02),
    )
    policy = toy.ToyPolicy()
    Trainer(policy, Sloped(), config, folder=folder, **options).train(toy.Echo)
    return policy


@pytest.mark.parametrize("engine", [False, True])
def test_step_inside_a_running_loop_is_the_same_step(tmp_path: Path, engine: bool) -> None:
    def options() -> dict[str, Any]:
        return {"sampler": toy.ToyEngine()} if engine else {}

    plain = train(tmp_path / "plain", **options())
    cell = in_a_cell(partial(train, tmp_path / "cell", **options()))
    assert cell.weights() == plain.weights() != toy.ToyPolicy().weights()
    assert metrics(tmp_path / "cell") == metrics(tmp_path / "plain")
