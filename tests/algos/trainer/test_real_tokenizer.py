"""Tests a checkpoint with a tokenizer of real size, whose weights are in several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.algos.trainer.model_runs import check_grpo_resumes
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, TrainerConfig

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families
from tests.policies.transformers.tiny_families import parts, tiles

pytestmark = [pytest.mark.component("torch", "transformers"), pytest.mark.soak]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a Mistral 3 with 150,000 tokens, two layers, and several files of weights."""
    monkeypatch.setattr(tiles, "byte_level", parts.large_byte_level)
    whole = families.build("mistral3", tmp_path / "whole")
    folder = tmp_path / "large"
    model = transformers.AutoModelForImageTextToText.from_pretrained(whole)
    model.save_pretrained(folder, max_shard_size="8MB")
    transformers.AutoProcessor.from_pretrained(whole).save_pretrained(folder)
    assert len([*folder.glob("*.safetensors")]) > 1
    return folder


def _make_env() -> Any:
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def _config(steps: int) -> TrainerConfig:
    optimization = OptimizationConfig(learning_rate=1e-3, tokens_per_batch=6000)
    return TrainerConfig(
        steps, rollouts=RolloutConfig(1, 2, max_tokens=6), optimization=optimization
    )


def test_large_tokenizer_trains_saves_and_resumes(large: Path, tmp_path: Path) -> None:
    check_grpo_resumes(large, _make_env, _config, tmp_path)
    (saved,) = (tmp_path / "straight").glob("checkpoints/step_000002/policy")
    config = json.loads((saved / "config.json").read_text())
    assert config["text_config"]["vocab_size"] >= 150_000
    stock = transformers.AutoModelForImageTextToText.from_pretrained(saved)
    assert torch.isfinite(stock.get_output_embeddings().weight).all()
    tokenizer = transformers.AutoProcessor.from_pretrained(saved).tokenizer
    assert len(tokenizer("thesethesethese", add_special_tokens=False)["input_ids"]) < 10
