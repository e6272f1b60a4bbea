"""Tests that Gymnasium's own vector environments work with environments of visenv."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from visenv.testing import toy
from visenv.types import StepResult

ADD = "<tool>\nname: add\namount: 3\n</tool>"
MODES: list[dict[str, Any]] = [
    {"vectorization_mode": "sync"},
    {
        "vectorization_mode": "async",
        "vector_kwargs": {"shared_memory": False, "context": "spawn"},
    },
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=["sync", "async"])
def test_stock_vector_environments(mode: dict[str, Any]) -> None:
    envs = gym.make_vec(toy.register(), num_envs=2, **mode)
    observation, infos = envs.reset(seed=[7, 7])  # type: ignore[arg-type]
    alone, _ = toy.make().reset(seed=7)
    assert observation["text"] == (alone["text"],) * 2
    assert isinstance(infos["step"][0], StepResult)
    observation, rewards, terminations, truncations, infos = envs.step((ADD, "<answer>0</answer>"))
    assert observation["text"] == ("<result>\ntotal 3\n</result>", "")
    assert observation["images"] == ((), ())
    assert rewards.tolist() == [0.0, 0.0]
    assert terminations.tolist() == [False, True]
    assert truncations.tolist() == [False, False]
    assert infos["aborted"].tolist() == ["", ""]
    envs.close()
