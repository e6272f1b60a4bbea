"""Tests that a comparison continues from finished cells, and checks every field of its output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.algos.comparison.cells import TASK, make_cell
from tests.programs import run_killed
from visenv.algos.comparison import command
from visenv.algos.comparison.cells import ComparisonCell, cell_file
from visenv.algos.comparison.run import BASELINES, Plan, run_cell
from visenv.algos.comparison.tasks import read_task
from visenv.algos.experiment.extension import write_recipe
from visenv.cli import main
from visenv.errors import DataError, DivergedError, RunError

REAL = pytest.mark.component("torch", "transformers")

MINE = "tests.algos.runs:Sloped"


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Return the file of a task with two steps."""
    path = tmp_path / "task.toml"
    path.write_text(TASK)
    return str(path)


@pytest.fixture
def compare(tmp_path: Path, task: str) -> Callable[..., None]:
    return partial(
        command.compare,
        *([], [task], [0], []),
        quick=False,
        minutes=100,
        threads=1,
        out=tmp_path / "out",
        runs=tmp_path / "runs",
        against=None,
    )


def fake_cell(plan: Plan, folder: Path, runs: Path, threads: int) -> ComparisonCell:
    if plan.algorithm == "rejection_sampling":
        raise DivergedError("the loss is NaN")
    name = plan.task.name
    return make_cell(plan.algorithm, name, plan.seed, settings=plan.task.digest)


def test_failed_cell_stops_no_other_one_and_is_run_again(
    compare: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run_cell", fake_cell)
    with pytest.raises(
        RunError, match=r"1 of 3 cells failed:\nrejection_sampling on task, seed 0: the"
    ):
        compare()
    played: list[str] = []

    def recorded(plan: Plan, *rest: Any) -> ComparisonCell:
        played.append(plan.algorithm)
        return make_cell(plan.algorithm, "task", settings=plan.task.digest)

    monkeypatch.setattr(command, "run_cell", recorded)
    compare(minutes=0)
    assert played == []
    assert "1 of 1" in (tmp_path / "out" / "results.md").read_text()
    compare()
    assert played == ["rejection_sampling"]


def test_cells_of_another_task_with_the_same_name_raise(
    compare: Callable[..., None], tmp_path: Path
) -> None:
    make_cell("grpo", "task", settings="old").write(tmp_path / "out")
    with pytest.raises(DataError, match="measured with other settings of task"):
        compare()


def test_other_folder_without_cells_raises(compare: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere contains no cell"):
        compare(against=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--minutes", "-1"], "minutes must be at least 0"),
        (["--seeds", "-1"], "seeds must be at least 0"),
        (["--threads", "0"], "threads must be at least 1"),
        (["--num-generations", "1"], "num.generations must be at least 2"),
    ],
)
def test_values_out_of_range_raise(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 1
    assert re.search(problem, capsys.readouterr().err)


def test_filtered_sft_needs_the_cell_of_grpo(task: str, tmp_path: Path) -> None:
    plan = Plan("filtered_sft", read_task(task), 0)
    with pytest.raises(RunError, match="does not exist: add"):
        run_cell(plan, tmp_path / "out", tmp_path / "runs", 1)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("old", "new"), [("episodes = 2,", "episodes = 3,"), ("steps = 2", "steps = 3")]
)
def test_warm_up_of_other_settings_is_not_reused(
    old: str, new: str, task: str, tmp_path: Path
) -> None:
    plan, runs = Plan("grpo", read_task(task), 0), tmp_path / "runs"
    Path(task).write_text(TASK.replace(old, new, 1))
    recipe = read_task(task).recipe
    warm_up = {"warm-up": recipe.phases["warm-up"]}
    shared = replace(recipe, runs=runs / "task" / "warm-up", name="seed-0", phases=warm_up)
    shared.folder.mkdir(parents=True)
    write_recipe(shared)
    (shared.folder / "report.html").touch()
    with pytest.raises(RunError, match=r"other settings|cannot change"):
        run_cell(plan, tmp_path / "out", runs, 1)


def check_cell(folder: Path, name: str, task: str, label: str) -> None:
    """Check every field of a cell of a task with two steps."""
    told = json.loads(cell_file(folder, label, name, 0).read_text())
    accuracies = [told.pop(part) for part in ("teacher", "warm_up", "final")]
    for each in accuracies:
        assert each.keys() == {"greedy", "sampled"}
        assert all(0 <= value <= 1 for value in each.values())
    curve, seconds, steps = told.pop("curve"), told.pop("seconds"), told.pop("steps")
    assert steps == 2 or label == "filtered_sft"
    assert curve[0] == {"episodes": 0, "seconds": 0, "accuracy": accuracies[1]["greedy"]}
    assert curve[-1] == {
        "episodes": 2 * steps,
        "seconds": pytest.approx(seconds, rel=1e-9),
        "accuracy": accuracies[2]["greedy"],
    }
    spent = [point["seconds"] for point in curve]
    assert spent == sorted(spent)
    assert told.pop("warm_up_seconds") > 0
    provenance = told.pop("provenance")
    assert provenance.keys() == {"started", "versions", "commit", "modified"}
    assert {"python", "visenv", "torch", "transformers"} <= provenance["versions"].keys()
    assert len(told.pop("sha256")) == 64
    assert told == {
        "algorithm": label,
        "task": name,
        "ability": name,
        "seed": 0,
        "num_generations": None,
        "settings": read_task(task).digest,
        "metric": "accuracy",
        "held_out_episodes": 1,
        "warm_up_steps": 2,
        "episodes": 2 * steps,
        "threads": 1,
    }


def check_results(folder: Path, labels: list[str]) -> None:
    """Check the table and the picture."""
    lines = (folder / "results.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in table[2:]] == [
        f"| {label}" for label in ("teacher", "SFT", *labels)
    ]
    assert "not run" not in "\n".join(table)
    with PIL.Image.open(folder / "results.png") as picture:
        assert picture.width > 1000
        below = np.asarray(picture.convert("RGB"))[picture.height // 3 :]
    assert (below < 255).any()  # the curves of the tasks


@REAL
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("no_curves")
def test_interrupted_comparison_continues(
    compare: Callable[..., None],
    task: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = ComparisonCell.write

    def write_and_stop(cell: ComparisonCell, folder: Path) -> None:
        write(cell, folder)
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(ComparisonCell, "write", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            compare()
    first = cell_file(out, "grpo", "task", 0)
    content = first.read_bytes()
    assert [path.name for path in out.iterdir()] == ["grpo"]
    compare()
    assert first.read_bytes() == content
    for label in BASELINES:
        check_cell(out, "task", task, label)
    check_results(out, list(BASELINES))


@REAL
@pytest.mark.timeout(600)
@pytest.mark.soak
def test_killed_command_continues_with_the_other_cells(tmp_path: Path) -> None:
    tasks = [tmp_path / f"{name}.toml" for name in ("one", "two")]
    for each in tasks:
        each.write_text(TASK)
    out = tmp_path / "new" / "out"
    words = [
        *("compare", "--algorithms", MINE, "--seeds", "0", "--threads", "1"),
        *(word for each in tasks for word in ("--tasks", str(each))),
        *("--out", str(out), "--runs", str(tmp_path / "runs")),
    ]
    run_killed(words, ComparisonCell.write, 2)
    finished = {path: path.read_bytes() for path in out.glob("*/*.json")}
    assert {path.parent.name for path in finished} == {"grpo", "rejection_sampling"}
    assert main(words) == 0
    assert all(path.read_bytes() == content for path, content in finished.items())
    for each in tasks:
        for label in (*BASELINES, MINE):
            check_cell(out, each.stem, str(each), label)
    check_results(out, [*BASELINES, MINE])
    # Another checkout that has only the cells trains nothing.
    again = [str(tmp_path / "none") if word == words[-1] else word for word in words]
    assert main([*again, "--against", str(out)]) == 0
    assert not (tmp_path / "none").exists()
