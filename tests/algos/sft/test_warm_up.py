"""A warm-up on an oracle's episodes: played, learnt from, and not done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from visenv.algos.sft import WarmUp, play_demonstrations
from visenv.algos.trainer import Optimisation, TrainerConfig
from visenv.errors import RunError
from visenv.registration import load

pytestmark = pytest.mark.component("torch", "transformers", "tensorboard")

SMALL = WarmUp(4, 0.5, 2, TrainerConfig(steps=2, optimisation=Optimisation(1e-3)))


def make_env() -> Any:
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = load("model", "tiny")(tmp_path_factory.mktemp("model") / "tiny", seed=0)
    return folder


def _policy(model: Path) -> Any:
    return load("policy", "transformers")(model, threads=1)


def _weights(policy: Any) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in policy.module.parameters()]


def test_it_trains_once_and_is_loaded_after_that(model: Path, tmp_path: Path) -> None:
    policy = _policy(model)
    before = _weights(policy)
    SMALL.apply(policy, make_env, tmp_path / "warm-up")
    learnt = _weights(policy)
    assert not all(map(torch.equal, before, learnt))
    assert len((tmp_path / "warm-up" / "metrics.jsonl").read_text().splitlines()) == 2
    other = _policy(model)

    def unused() -> Any:
        raise AssertionError("it was done before")

    SMALL.apply(other, unused, tmp_path / "warm-up")
    assert all(map(torch.equal, learnt, _weights(other)))


def test_none_was_asked_for(model: Path, tmp_path: Path) -> None:
    WarmUp().apply(_policy(model), make_env, tmp_path / "warm-up")
    assert not (tmp_path / "warm-up").exists()


def test_demonstrations_have_tokens_and_ended_by_themselves(model: Path) -> None:
    policy, oracle = _policy(model), load("policy", "oracle")()
    episodes = play_demonstrations(policy, oracle, make_env, [3, 4])
    assert [episode.seed for episode in episodes] == [3, 4]
    assert all(episode.status == "terminated" for episode in episodes)
    assert all(segment.loss_mask.any() for episode in episodes for segment in episode.segments)


def test_an_oracle_that_finishes_nothing_is_an_error(model: Path) -> None:
    class Broken(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            raise ValueError("the tool is out of order")

    with pytest.raises(RunError, match=r"The oracle finished no episode: .*out of order"):
        play_demonstrations(
            _policy(model), load("policy", "oracle")(), lambda: Broken(make_env()), [3]
        )
