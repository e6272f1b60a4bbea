"""Tests a recipe under `accelerate launch`: both processes take part in one run."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.algos.runs import metrics, small_sweep

from .launching import launch

pytestmark = [
    pytest.mark.soak,  # test_launch.py runs a recipe on two processes, without DeepSpeed
    pytest.mark.component("torch", "accelerate", "deepspeed", "transformers"),
    pytest.mark.timeout(900),
]

PROGRAM = Path(__file__).with_name("program.py")
TOML = small_sweep("", "[sweep.arms.paper]", steps=1, groups=2, episodes=3)
LABELS = ["before training", "after warm-up", "after rl"]


class Launched(NamedTuple):
    """Holds a finished launch and the parent of the folder of its run."""

    folder: Path
    done: subprocess.CompletedProcess[str]


def command(folder: Path, *words: str) -> str:
    """Return the task of `program.py` that runs the recipe in a folder."""
    return shlex.join(["visenv", "train", str(folder / "job.toml"), "--runs", str(folder), *words])


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """Check the gradients of a model without a family of its own, and run a recipe."""
    from tests.policies.transformers import families

    top = tmp_path_factory.mktemp("runs")
    (top / "job.toml").write_text(TOML)
    model = families.build("gemma3", tmp_path_factory.mktemp("model"))
    done = launch("ZeRO-2", PROGRAM, top, model, "check", command(top))
    assert done.returncode == 0, done.stderr
    return Launched(top, done)


def test_padded_rows_have_the_gradients_of_one_process(launched: Launched) -> None:
    assert launched.done.stdout.count("all cases agree") == 2, launched.done.stderr


@pytest.mark.parametrize("name", ["gemma3", "qwen2_vl"])
def test_padded_rows_in_shards_have_the_gradients_of_one_process(name: str, tmp_path: Path) -> None:
    """Check ZeRO-3, where all processes must run the vision tower equally often.

    A process without images runs it with the others. Qwen2-VL runs it apart for images and for
    videos. A run whose model was also loaded in shards (``--zero3_init_flag true``) is the same.
    """
    from tests.policies.transformers import families

    model = families.build(name, tmp_path / "model")
    done = launch("ZeRO-3", PROGRAM, tmp_path, model, "check", "straight", "shards")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all cases agree") == 2, done.stderr
    assert done.stdout.count("shards hold") == 2, done.stderr
    rows = zip(metrics(tmp_path / "straight"), metrics(tmp_path / "shards"), strict=True)
    for whole, sharded in rows:
        assert sharded == pytest.approx(whole, rel=1e-9)


def test_recipe_runs_on_two_processes(launched: Launched) -> None:
    _check_scores(launched.folder / "job")
    assert not (launched.folder / "job" / "warm-up").is_symlink()


def test_sweep_runs_on_two_processes(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TOML)
    done = launch("ZeRO-2", PROGRAM, tmp_path, "", command(tmp_path, "--sweep"))
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "job" / "sweep.json").read_text())
    assert [row["seeds"] for row in rows.values()] == [[0], [0]]
    for arm in ("paper", "outcome"):
        _check_scores(tmp_path / "job" / arm / "seed-0")
        assert (tmp_path / "job" / arm / "seed-0" / "warm-up").is_symlink()


def test_run_that_exists_is_refused_on_two_processes(launched: Launched) -> None:
    folder = launched.folder
    before = sorted(folder.rglob("*"))
    refused = launch("ZeRO-2", PROGRAM, folder, "", command(folder))
    assert refused.returncode != 0
    assert "exists already" in refused.stderr
    assert sorted(folder.rglob("*")) == before


def _check_scores(run: Path) -> None:
    """Check that a run has all scores, and that both processes played held-out samples."""
    results = json.loads((run / "results.json").read_text())
    assert list(results["scores"]) == LABELS
    assert results["scores"]["after rl"]["scenes"]["greedy"]["episodes"] == 3
