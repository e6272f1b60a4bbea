"""Tests slow judges: runs with other delays, killed or not, give identical files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.algos.runs import metrics
from tests.programs import run_python

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.algos.trainer import judged_runs

pytestmark = pytest.mark.component("torch", "transformers", "tensorboard")


def _bytes(folder: Path) -> dict[str, bytes]:
    """Return the content of all files except the copies of the metrics, which contain times."""
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.parent.name != "logs"
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _episodes(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return all saved episodes without the wall times of their turns, and their checksums."""
    saved: dict[str, list[dict[str, Any]]] = {}
    for name, lines in _bytes(folder / "episodes").items():
        saved[name] = [json.loads(line) for line in lines.splitlines()]
        for episode in saved[name]:
            del episode["crc32"]  # of a text that contains the times
        for turn in (turn for episode in saved[name] for turn in episode["turns"]):
            assert turn.pop("sampling_seconds") >= 0
            assert turn.pop("env_seconds") >= 0
    return saved


def _rollouts(folder: Path, name: str) -> float:
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return sum(float(row.get(name, 0)) for row in rows)


DECIDED = "having decided what to learn from"
FEW = ["noting an episode", DECIDED]


@pytest.fixture(
    scope="module",
    params=[
        (2, FEW),
        pytest.param((3, list(judged_runs.points())), marks=pytest.mark.soak),
    ],
    ids=["few", "all"],
)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the parent of the folders of runs that are killed and of runs that are not."""
    count, names = request.param
    folder = tmp_path_factory.mktemp("runs")
    program = judged_runs.__name__
    done = run_python("-m", program, folder, str(count), *names, gpu=False)  # CUDA fails in forks
    assert done.returncode == 0, done.stderr
    assert "were read from the journal" in done.stderr
    assert len(list(folder.iterdir())) == count + len(names)
    return folder


def test_result_does_not_depend_on_when_a_verdict_arrives(runs: Path) -> None:
    first, *others = sorted(runs.iterdir(), key=lambda run: (run.name != "straight 0", run.name))
    checkpoints = _bytes(first / "checkpoints")
    assert {Path(path).name for path in checkpoints} >= {"weights.pt", "state.json"}
    for other in others:
        assert _bytes(other / "checkpoints") == checkpoints, other.name
        assert _episodes(other) == _episodes(first), other.name
        assert metrics(other) == metrics(first), other.name


def test_runs_met_all_failures_that_could_make_them_differ(runs: Path) -> None:
    straight = runs / "straight 0"
    assert _rollouts(straight, "rollout/zero_std") > 0  # dynamic sampling replaced groups
    retries = _rollouts(straight, "rollout/retries")
    judge, memory = (_rollouts(straight, f"rollout/aborted/{name}") for name in ("judge", "memory"))
    left_out = _rollouts(straight, "episodes/aborted")
    assert memory > 0  # some episodes failed before their judge was called and were played again
    assert memory < retries < memory + judge  # others failed in the judge
    assert 0 < left_out < retries - memory
    # The counts of a step that was read from the journal are those of the interrupted process.
    for name in ("groups", "zero_std", "episodes", "retries", "aborted/memory"):
        counts = [_rollouts(run, f"rollout/{name}") for run in (straight, runs / DECIDED)]
        assert counts[0] == counts[1], name


def test_judge_s_value_is_part_of_every_reward(runs: Path) -> None:
    path = max((runs / "straight 0" / "episodes").glob("*.jsonl"))
    episodes: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    paid = [each for each in episodes if each["status"] != "aborted"]
    assert {each["terms"]["judged"] for each in paid} == {0.0, 1.0}
