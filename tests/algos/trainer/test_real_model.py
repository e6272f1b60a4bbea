"""Tests the trainer with a small, real vision-language model in a small, real environment."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.algos.runs import metrics
from tests.algos.trainer.model_runs import (
    check_grpo_resumes,
    make_scenes,
    policy_of,
    short_run,
    weights_of,
)
from tests.tiny_models import tiny_model
from visenv.algos.sft import SFT
from visenv.algos.trainer import Trainer
from visenv.registration import load
from visenv.rollout import Collector

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


_config = partial(short_run, groups=2, num_generations=3, tokens_per_batch=600)


def test_grpo_on_policy_then_resumed_to_the_bit(model: Path, tmp_path: Path) -> None:
    check_grpo_resumes(model, make_scenes, _config, tmp_path)
    assert metrics(tmp_path / "twice") == metrics(tmp_path / "straight")


def test_sft_on_oracle_episodes_lowers_the_loss(model: Path, tmp_path: Path) -> None:
    policy = policy_of(model)
    before = weights_of(policy)
    groups = Collector(make_scenes, load("policy", "oracle")()).groups(range(4))
    episodes = [policy.encode(episode) for (episode,) in groups]
    trainer = Trainer(policy, SFT(), _config(4), folder=tmp_path / "sft")
    trainer.fit(episodes, batch_size=4)
    losses = [row["loss"] for row in metrics(tmp_path / "sft")]
    assert losses[3] < losses[0] - 0.5
    assert all(one != other for one, other in zip(before, weights_of(policy), strict=True))
