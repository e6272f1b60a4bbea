"""Tests the trainer with tiny models of families that are not packed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.algos.runs import metrics
from tests.algos.trainer.model_runs import (
    check_grpo_resumes,
    policy_of,
    sft_losses,
    short_run,
    weights_of,
)
from tests.environments import few
from visenv.algos.policy_gradient import GSPO
from visenv.algos.trainer import Trainer
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.types import EventLog, Sample

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families

pytestmark = [
    pytest.mark.component("torch", "transformers", "trl"),  # TRL contains chat templates
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # InternVL's processor
    pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning"),  # that of GLM-4.6V
]


NAMES = ["gemma3", *sorted({*families.FAMILIES} - {"gemma3"})]


@pytest.fixture(scope="module", params=few(NAMES, 1))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "smolvlm":
        pytest.importorskip("num2words")  # its processor needs this package
    return families.build(request.param, tmp_path_factory.mktemp(request.param))


def letters(log: EventLog, sample: Sample) -> float:
    """Return a reward in which random turns differ: the mean of their characters."""
    text = "".join(turn.text for turn in log.turns)
    return sum(map(ord, text)) / (len(text) * 128)


def _make_env() -> Any:
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny", reward="outcome")
    return RewardWrapper(env, [RewardTerm("letters", 1.0, of_log(letters))])


def test_grpo_on_policy_then_resumed_to_the_bit(model: Path, tmp_path: Path) -> None:
    check_grpo_resumes(model, _make_env, short_run, tmp_path)
    assert all(row["grad_norm"] > 0 for row in metrics(tmp_path / "straight"))


def test_gspo_changes_the_weights(model: Path, tmp_path: Path) -> None:
    policy = policy_of(model)
    before = weights_of(policy)
    Trainer(policy, GSPO(), short_run(1), folder=tmp_path / "run").train(_make_env)
    (row,) = metrics(tmp_path / "run")
    assert row["ratio"] == pytest.approx(1, abs=1e-4)
    assert weights_of(policy) != before


def test_sft_on_oracle_episodes_lowers_the_loss(model: Path, tmp_path: Path) -> None:
    losses = sft_losses(model, _make_env, tmp_path / "sft")
    assert losses[4] < losses[0] - 0.1
