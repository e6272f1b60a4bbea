"""Tests that a report names files of a run that are missing, and rows that have changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from visenv.viewer.facts import check_phases, check_settings, check_steps

ROWS = ['{"step": 1, "loss": 0.5}\n', '{"step": 2, "loss": 0.25}\n']


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run with one phase, its checkpoint, and the episodes of one step."""
    phase = tmp_path / "rl"
    checkpoint = phase / "checkpoints/step_000002"
    for folder in (checkpoint / "logs", phase / "episodes"):
        folder.mkdir(parents=True)
    (phase / "metrics.jsonl").write_text("".join([*ROWS, '{"step": 3, "loss": 0.125}\n']))
    (checkpoint / "logs/metrics.jsonl").write_text("".join(ROWS))
    (phase / "episodes/step_000002.jsonl").write_text("{}\n")
    (checkpoint / "logs/episodes.json").write_text('{"step_000002.jsonl": 3}')
    (tmp_path / "recipe.json").write_text("{}")
    (tmp_path / "results.json").write_text('{"scores": {}, "steps": {"rl": 3}}')
    return tmp_path


def problems_of(run: Path) -> list[str]:
    """Return the problems of a run whose folder may lack files."""
    rows = [
        {"phase": "rl", **json.loads(line)}
        for line in (run / "rl/metrics.jsonl").read_text().splitlines()
    ]
    problems: list[str] = []
    check_settings(run, problems)
    check_steps(run, rows, problems)
    check_phases(run, problems)
    return problems


def test_whole_run_has_no_problem(run: Path) -> None:
    assert problems_of(run) == []


@pytest.mark.parametrize("name", ["recipe.json", "results.json"])
def test_missing_settings_and_results_are_named(run: Path, name: str) -> None:
    (run / name).unlink()
    (problem,) = problems_of(run)
    assert problem.startswith(f"{run / name} is missing: ")


def test_results_that_no_recipe_wrote_need_no_recipe(run: Path) -> None:
    (run / "recipe.json").unlink()
    (run / "results.json").write_text('{"rows": []}')
    assert problems_of(run) == []


def test_changed_row_is_found_in_the_copy_of_the_newest_checkpoint(run: Path) -> None:
    path = run / "rl/metrics.jsonl"
    path.write_text(path.read_text().replace("0.25", "0.35"))
    copy = run / "rl/checkpoints/step_000002/logs/metrics.jsonl"
    assert problems_of(run) == [
        f"{path} differs from its copy {copy}: 1 of its lines are missing or have changed"
    ]


def test_steps_without_metrics_are_counted(run: Path) -> None:
    path = run / "rl/metrics.jsonl"
    path.write_text("".join(ROWS))
    assert problems_of(run) == [f"{path} has no metrics of 1 of 3 steps"]


@pytest.mark.parametrize("content", [None, "", "{}\n{}\n"])
def test_file_of_episodes_that_is_missing_or_has_another_size_is_named(
    run: Path, content: str | None
) -> None:
    path = run / "rl/episodes/step_000002.jsonl"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert problems_of(run) == [f"{path} is missing or has another size than when it was saved"]


@pytest.mark.parametrize(
    "episodes", [["step_000002.jsonl"], {"../metrics.jsonl": 1, "\0": 2, "a" * 999: None}, 3]
)
def test_sizes_of_other_types_and_names_are_no_error(run: Path, episodes: object) -> None:
    sizes = run / "rl/checkpoints/step_000002/logs/episodes.json"
    sizes.write_text(json.dumps(episodes))
    assert problems_of(run) == []
