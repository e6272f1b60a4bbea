"""Tests `visenv train rows`: SFT, then GRPO, of any checkpoint on rows of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.environments import few
from tests.visenv.data.row_files import photo, row, write_lines
from visenv.cli import main

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from safetensors.torch import load_file

from tests.policies.transformers import families

pytestmark = [
    pytest.mark.usefixtures("no_curves"),
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # InternVL's processor
]

SHORT = [
    *("--model.device", "cpu", "--model.dtype", "float32", "--model.options.threads", "1"),
    *("--phases.sft.steps", "2", "--phases.sft.demonstrations.episodes", "2"),
    *("--phases.sft.demonstrations.batch-size", "2"),
    *("--phases.rl.steps", "1", "--phases.rl.rollouts.max-tokens", "8"),
    *("--phases.rl.rollouts.prompts-per-step", "1", "--phases.rl.rollouts.num-generations", "2"),
    *("--evaluation.episodes", "1", "--evaluation.max-tokens", "8", "--trackers"),
]


def write_rows(folder: Path) -> Path:
    """Write 8 rows with an image each, and return their file."""
    rows = []
    for number in range(8):
        photo(folder / "photos" / f"{number}.png", (30 * number, 10, 10), (80, 60))
        rows.append(row(number, split="train" if number else "test"))
    return write_lines(folder / "my.jsonl", rows)


@pytest.mark.parametrize("family", few(["gemma3", "internvl"], 1))
def test_checkpoint_of_any_family_is_trained_by_its_name(family: str, tmp_path: Path) -> None:
    model = families.build(family, tmp_path / "model")
    data = write_rows(tmp_path)
    words = ["--model.name", str(model), "--data", f"rows:{data}", "--runs", str(tmp_path / "runs")]
    assert main(["train", "rows", *words, *SHORT]) == 0
    run = tmp_path / "runs" / "rows"
    scores = json.loads((run / "results.json").read_text())["scores"]
    assert [*scores] == ["before training", "after sft", "after rl"]
    recipe = json.loads((run / "recipe.json").read_text())
    assert recipe["phases"]["sft"]["demonstrations"]["player"] == "oracle"
    (trained,) = (run / "sft" / "checkpoints").rglob("model.safetensors")
    before, after = load_file(model / "model.safetensors"), load_file(trained)
    assert before.keys() == after.keys()
    assert any(not before[name].equal(after[name]) for name in before)
