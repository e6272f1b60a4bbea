"""Tests that a killed step with a model that samples in batches is repeated bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.tiny_models import tiny_model
from visenv.algos.trainer.episode_sources import RolloutSource
from visenv.algos.trainer.journal import EpisodeJournal
from visenv.registration import load
from visenv.rollout import Collector
from visenv.types import Group, Sampling

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def _make_env() -> Any:
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def _play(model: Path, folder: Path, steps: int = 2) -> tuple[list[list[Group]], list[bool]]:
    """Return the groups of each step, and whether they were read from the journal."""
    policy = load("policy", "transformers")(model, threads=1)
    collector = Collector(_make_env, policy, Sampling(1.0, 6), concurrency=5)
    episode_source = RolloutSource(collector, policy, 2, 3, seed=0)
    episode_source.journal = EpisodeJournal(folder, {"run": "one"}, exact=True)
    groups: list[list[Group]] = []
    read: list[bool] = []
    for step in range(steps):
        groups.append(episode_source.groups(step, lambda _: None))
        read.append(episode_source.replayed_seconds > 0)
    collector.close()
    return groups, read


def test_step_is_read_or_played_completely_and_is_bitwise_the_same(
    model: Path, tmp_path: Path
) -> None:
    straight, read = _play(model, tmp_path)
    assert read == [False, False]
    # State after a kill: the first step is complete, half of the second step's episodes are
    # written.
    second = tmp_path / "step_000001"
    (second / "kept_0_of_1.json").unlink()
    lines = (second / "episodes_0.jsonl").read_bytes()
    (second / "episodes_0.jsonl").write_bytes(lines[: len(lines) // 2])
    again, read = _play(model, tmp_path)
    assert again == straight  # including log-probabilities
    assert read == [True, False]
