"""Tests that the score of an episode, which a slow judge may compute, is computed once."""

from __future__ import annotations

import gymnasium as gym
import pytest

from tests.environments import IDS, VARIANTS, with_components
from visenv.env import VisEnv
from visenv.testing.record import base_of, played

SANDBOXED = "visenv/ArftCoding-v0"
"""Its turns run in a sandbox, and its score is that of ArftSearch."""

CASES = [env_id for env_id in IDS if env_id not in {*VARIANTS, SANDBOXED}]


@pytest.mark.parametrize("env_id", with_components(CASES, "torch", "mujoco", "osmesa"))
def test_score_is_computed_once_in_an_episode(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym.make(env_id, preset="tiny")
    kind = type(base_of(env))
    scores: list[float] = []
    task_score = kind.task_score

    def counted(self: VisEnv) -> float:
        scores.append(task_score(self))
        return scores[-1]

    monkeypatch.setattr(kind, "task_score", counted)
    episode = played(env, "oracle", 0)
    env.close()
    assert episode.status == "terminated"
    assert scores == [1.0]
    first = kind.headline_metrics[0]
    assert episode.metrics[first] == 1.0
