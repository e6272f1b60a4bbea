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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a sweep of two arms on two processes, and return the parent of its folder."""
    top = tmp_path_factory.mktemp("runs")
    (top / "job.toml").write_text(TOML)
    done = launch("ZeRO-2", PROGRAM, top / "job.toml", "--runs", top, "--sweep")
    assert done.returncode == 0, done.stderr
    return top


def test_sweep_runs_on_two_processes(folder: Path) -> None:
    rows = json.loads((folder / "job" / "sweep.json").read_text())
    assert [row["seeds"] for row in rows.values()] == [[0], [0]]
    for arm in ("paper", "outcome"):
        results = json.loads((folder / "job" / arm / "seed-0" / "results.json").read_text())
        assert list(results["scores"]) == ["before training", "after warm-up", "after rl"]
        # Both processes played their share of the held-out samples.
        assert results["scores"]["after rl"]["scenes"]["greedy"]["episodes"] == 3
        assert (folder / "job" / arm / "seed-0" / "warm-up").is_symlink()


@pytest.mark.soak
def test_run_that_exists_is_refused_on_two_processes(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    refused = launch("ZeRO-2", PROGRAM, folder / "job.toml", "--runs", folder)
    assert refused.returncode != 0
    assert "exists already" in refused.stderr
    assert sorted(folder.rglob("*")) == before
