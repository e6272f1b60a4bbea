"""Tests a recipe under `accelerate launch`: both processes take part in one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.algos.runs import small_sweep

from .launching import launch

pytestmark = [
    pytest.mark.component("torch", "accelerate", "deepspeed", "transformers"),
    pytest.mark.timeout(900),
]

PROGRAM = Path(__file__).parent / "recipe.py"
TOML = small_sweep("", "[sweep.arms.paper]", steps=1, groups=2, episodes=3)


def test_sweep_runs_on_two_processes_and_a_run_that_exists_is_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "job.toml"
    recipe.write_text(TOML)
    words: list[str | Path] = [recipe, "--runs", tmp_path]
    done = launch("ZeRO-2", PROGRAM, *words, "--sweep")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "job"
    rows = json.loads((folder / "sweep.json").read_text())
    assert [row["seeds"] for row in rows.values()] == [[0], [0]]
    for arm in ("paper", "outcome"):
        results = json.loads((folder / arm / "seed-0" / "results.json").read_text())
        assert list(results["scores"]) == ["before training", "after warm-up", "after rl"]
        # Both processes played their share of the held-out samples.
        assert results["scores"]["after rl"]["scenes"]["greedy"]["episodes"] == 3
        assert (folder / arm / "seed-0" / "warm-up").is_symlink()
    before = sorted(folder.rglob("*"))
    refused = launch("ZeRO-2", PROGRAM, *words)
    assert refused.returncode != 0
    assert "exists already" in refused.stderr
    assert sorted(folder.rglob("*")) == before
