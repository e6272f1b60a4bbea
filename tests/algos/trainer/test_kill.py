"""Tests that a run that is killed at any point resumes with identical bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.algos.runs import metrics
from tests.algos.trainer import kill_points
from tests.programs import run_python
from visenv.episodes import read_episodes

pytestmark = pytest.mark.component("torch", "tensorboard")


def _episodes(folder: Path) -> dict[str, list[Any]]:
    return {path.name: list(read_episodes(path)) for path in (folder / "episodes").glob("*.jsonl")}


FEW = [
    "between two updates of a step",
    "having sent them",
    "naming the best weights",
    "saving the second checkpoint",
    "removing an old one",
]
REST = [name for name in kill_points.points() if name not in FEW]


@pytest.mark.parametrize("names", [FEW, pytest.param(REST, marks=pytest.mark.soak)])
def test_run_killed_at_any_point_resumes_bitwise(tmp_path: Path, names: list[str]) -> None:
    done = run_python("-m", kill_points.__name__, tmp_path, *names)
    assert done.returncode == 0, done.stderr
    straight = tmp_path / "straight"
    policy = kill_points.train(straight)
    for name in names:
        folder = tmp_path / name
        steps = len((folder / "metrics.jsonl").read_text().splitlines())
        assert steps < kill_points.CONFIG.steps, name
        resumed = kill_points.train(folder, resume=True)
        assert resumed.weights() == policy.weights(), name
        assert resumed.version == policy.version, name
        assert metrics(folder) == metrics(straight), name
        assert _episodes(folder) == _episodes(straight), name
        evaluations = [(each / "evaluations.jsonl").read_text() for each in (folder, straight)]
        assert evaluations[0] == evaluations[1], name
        for kept in ("checkpoints", "reference", "best"):
            one, other = (
                sorted(path.name for path in (run / kept).iterdir()) for run in (folder, straight)
            )
            assert one == other, name
