"""Tests a checkpoint with a tokenizer of real size, whose weights are in several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.algos.trainer.model_runs import check_grpo_resumes, make_scenes, short_run

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


def test_large_tokenizer_trains_saves_and_resumes(large: Path, tmp_path: Path) -> None:
    check_grpo_resumes(large, make_scenes, short_run, tmp_path)
    (saved,) = (tmp_path / "straight").glob("checkpoints/step_000002/policy")
    config = json.loads((saved / "config.json").read_text())
    assert config["text_config"]["vocab_size"] >= 150_000
    stock = transformers.AutoModelForImageTextToText.from_pretrained(saved)
    assert torch.isfinite(stock.get_output_embeddings().weight).all()
    tokenizer = transformers.AutoProcessor.from_pretrained(saved).tokenizer
    assert len(tokenizer("thesethesethese", add_special_tokens=False)["input_ids"]) < 10
