"""Tests that a recipe's run, killed at any point, resumes to the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.algos.experiment import kill_points
from tests.programs import run_python

pytestmark = [
    pytest.mark.usefixtures("no_curves"),
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]


def scores(runs: Path) -> Any:
    return json.loads((runs / "job" / "results.json").read_text())["scores"]


def weights(runs: Path) -> bytes:
    (path,) = (runs / "job" / "rl" / "checkpoints" / "step_000001" / "policy").glob("*.safetensors")
    return path.read_bytes()


ALL = list(kill_points.points())


@pytest.mark.parametrize("names", [["evaluation"], pytest.param(ALL, marks=pytest.mark.soak)])
def test_recipe_killed_at_any_point_resumes_to_the_same_results(
    tmp_path: Path, names: list[str]
) -> None:
    done = run_python("-m", kill_points.__name__, tmp_path, *names)
    assert done.returncode == 0, done.stderr
    if "validation" in names:
        assert not (tmp_path / "validation").exists()  # written only after validation
    straight = tmp_path / "straight"
    kill_points.train(straight)
    for name in names:
        runs = tmp_path / name
        assert not (runs / "job" / "report.html").exists(), name
        kill_points.train(runs)  # the lock of the dead process has no effect
        assert scores(runs) == scores(straight), name
        assert weights(runs) == weights(straight), name
        assert (runs / "job" / "report.html").exists(), name
