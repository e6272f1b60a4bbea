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


LABELS = ["before training", "after warm-up", "after rl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a recipe on two processes, and return the parent of its folder."""
    top = tmp_path_factory.mktemp("runs")
    (top / "job.toml").write_text(TOML)
    done = launch("ZeRO-2", PROGRAM, top / "job.toml", "--runs", top)
    assert done.returncode == 0, done.stderr
    return top


def test_recipe_runs_on_two_processes(folder: Path) -> None:
    _check_scores(folder / "job")
    assert not (folder / "job" / "warm-up").is_symlink()


@pytest.mark.soak
def test_sweep_runs_on_two_processes(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TOML)
    done = launch("ZeRO-2", PROGRAM, tmp_path / "job.toml", "--runs", tmp_path, "--sweep")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "job" / "sweep.json").read_text())
    assert [row["seeds"] for row in rows.values()] == [[0], [0]]
    for arm in ("paper", "outcome"):
        _check_scores(tmp_path / "job" / arm / "seed-0")
        assert (tmp_path / "job" / arm / "seed-0" / "warm-up").is_symlink()


@pytest.mark.soak
def test_run_that_exists_is_refused_on_two_processes(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    refused = launch("ZeRO-2", PROGRAM, folder / "job.toml", "--runs", folder)
    assert refused.returncode != 0
    assert "exists already" in refused.stderr
    assert sorted(folder.rglob("*")) == before


def _check_scores(run: Path) -> None:
    """Check that a run has all scores, and that both processes played held-out samples."""
    results = json.loads((run / "results.json").read_text())
    assert list(results["scores"]) == LABELS
    assert results["scores"]["after rl"]["scenes"]["greedy"]["episodes"] == 3
