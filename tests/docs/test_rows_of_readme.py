"""Runs the commands of README's section about your rows with a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, Snippet, snippets
from tests.visenv.data.row_files import photo, row, write_lines
from visenv.cli import main

SMALL = [
    *("--model.name", "tiny", "--model.tokenizer-episodes", "4"),
    *("--model.device", "cpu", "--model.dtype", "float32"),
    *("--environments.rows.options.preset", "tiny", "--evaluation.max-tokens", "16"),
    *("--phases.rl.steps", "200", "--phases.rl.rollouts.max-tokens", "16"),
    *("--phases.rl.rollouts.prompts-per-step", "1", "--phases.rl.rollouts.num-generations", "2"),
]
"""Settings of a tiny model on a CPU."""


def section() -> Snippet:
    """Return the block of commands about your rows."""
    (found,) = [each for each in snippets(ROOT / "README.md") if "rows:my.jsonl" in each.text]
    return found


def test_start_page_has_the_same_commands() -> None:
    blocks = [each.text for each in snippets(ROOT / "docs" / "index.md")]
    assert section().text in blocks


@pytest.mark.component("torch")
@pytest.mark.component("transformers")
def test_commands_train_and_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photo(Path("photos", "0.png"))
    write_lines(Path("my.jsonl"), [row(id=number) for number in range(20)])
    install, train, evaluate, view = section().commands()
    assert install[:2] == ["pip", "install"]
    small = [word if word != "200" else "1" for word in SMALL]
    names = [word for word in train[2:] if word.startswith("--")]
    assert names == ["--data", "--model.name"]
    assert main([*train[1:], *small]) in (None, 0)
    done = [each.replace("step_000200", "step_000001") for each in evaluate[1:]]
    main([*done, "--out", "out", "--option", "preset=tiny", "--max-tokens", "16"])
    lines = Path("out", "episodes.jsonl").read_text("utf-8").splitlines()
    held_out = {json.loads(line)["sample_id"] for line in lines}
    recipe = json.loads(Path("runs", "rows", "recipe.json").read_text("utf-8"))
    assert recipe["environments"]["rows"]["data"] == "rows:my.jsonl"
    trained = {
        json.loads(line)["sample_id"]
        for line in Path("runs/rows/rl/episodes/step_000001.jsonl").read_text("utf-8").splitlines()
    }
    assert held_out
    assert trained
    assert not held_out & trained
    main([*view[1:], "--no-open"])
