"""Tests Gymnasium's `AsyncVectorEnv`, which forks a process that has played an episode."""

from __future__ import annotations

import pytest

from tests.environments import IDS
from tests.programs import run_python

PROGRAM = """
import sys
from functools import partial
import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv
import visenv

for name in sys.argv[1:]:
    make = partial(gym.make, name, disable_env_checker=True)
    env = make()
    env.reset(seed=0)
    env.step("nothing")
    env.close()
    envs = AsyncVectorEnv([make] * 2, shared_memory=False)
    observations, _ = envs.reset(seed=[1, 2])
    assert len(observations) == 2
    envs.step(("nothing", "nothing"))
    envs.close()
    print(name, flush=True)
"""


FEW = ["visenv/House-v0", "visenv/ZoomVQA-v0", "visenv/ArftCoding-v0"]
"""A renderer with OpenGL, a world without one, and a sandbox."""


@pytest.mark.timeout(300)
@pytest.mark.component("mujoco", "osmesa", "torch")  # PyTorch for the magnifier of MagsZoom
@pytest.mark.parametrize("ids", [FEW, pytest.param(IDS, marks=pytest.mark.soak)])
def test_forked_environments_play_after_their_parent_has_played(ids: list[str]) -> None:
    done = run_python("-c", PROGRAM, *ids)
    assert done.stdout.split() == ids, done.stderr[-3000:]
