"""Tests sweeps: arms with a shared warm-up, resuming, budgets, and the table of results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.algos.experiment.recorder import Recorder
from tests.algos.runs import small_sweep
from visenv.algos.experiment import Recipe, read_sweep, run_sweep, train
from visenv.algos.experiment.sweep import SweepRun, merged, shared_by_arm, shared_phases
from visenv.errors import ConfigurationError, DivergedError, RunError, UnknownNameError

pytestmark = [
    pytest.mark.usefixtures("no_curves"),
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]

TOML = small_sweep(
    'callbacks = ["tests.algos.experiment.recorder:Recorder"]',
    "[sweep]\nminutes = 100.0\n[sweep.arms.paper]\nseeds = [0, 1]",
    steps=2,
    groups=1,
    episodes=2,
)


def sweep_of(folder: Path, *words: str, text: str = TOML) -> tuple[Recipe, list[SweepRun], float]:
    path = folder / "sweep.toml"
    path.write_text(text)
    return read_sweep(path, ["--runs", str(folder), *words])


def test_changes_are_merged_into_nested_tables() -> None:
    table = {"a": {"b": 1, "c": {"d": 2}}, "e": 3}
    assert merged(table, {"a": {"c": {"f": 4}, "b": {"g": 5}}}) == {
        "a": {"b": {"g": 5}, "c": {"d": 2, "f": 4}},
        "e": 3,
    }
    assert table["a"] == {"b": 1, "c": {"d": 2}}  # unchanged


def test_first_seeds_come_before_the_others(tmp_path: Path) -> None:
    _, runs, minutes = sweep_of(tmp_path)
    assert [(run.arm, run.recipe.seed) for run in runs] == [
        ("paper", 0),
        ("outcome", 0),
        ("paper", 1),
    ]
    assert minutes == 100
    assert [run.recipe.phases["rl"].options for run in runs] == [{}, {"reward": "outcome"}, {}]


def test_phases_are_shared_up_to_the_first_change(tmp_path: Path) -> None:
    _, runs, _ = sweep_of(tmp_path)
    recipes = [run.recipe for run in runs]
    assert shared_phases(recipes) == ["warm-up"]
    longer = replace(recipes[0], phases={**recipes[0].phases, "more": recipes[0].phases["rl"]})
    assert shared_phases([longer, recipes[0]]) == ["warm-up"]  # the last phase is never shared
    assert shared_phases([recipes[0], replace(recipes[1], executor="threads")]) == []


def test_arms_share_phases_with_arms_that_differ_only_in_phases(tmp_path: Path) -> None:
    changes = 'environments = { scenes = { options = { preset = "crop" } } }'
    others = "".join(
        f"[sweep.arms.{arm}.changes]\n{changes}\n{phases}\n"
        for arm, phases in (("crop", ""), ("crop-outcome", "phases.rl.options.reward = 'outcome'"))
    )
    only = "[sweep.arms.page.changes]\nexecutor = 'threads'\n"
    _, runs, _ = sweep_of(tmp_path, text=TOML + others + only)
    assert shared_by_arm(runs) == {
        "paper": ("shared-warm-up", ["warm-up"]),
        "outcome": ("shared-warm-up", ["warm-up"]),
        "crop": ("shared-warm-up-crop", ["warm-up"]),
        "crop-outcome": ("shared-warm-up-crop", ["warm-up"]),
    }


@pytest.mark.parametrize(
    ("lines", "error", "says"),
    [
        ("[sweep.arms.x.changes.phases.rl]\nstepps = 3", UnknownNameError, "steps"),
        ("[sweep.arms.x.changes.phase]\nrl = 3", UnknownNameError, "phases"),
        ("[sweep.arms.x]\nseeds = []", ConfigurationError, "seeds"),
        ("[sweep.arms.x]\nseeds = [1, 1]", ConfigurationError, "seeds"),
        ("[sweep.arms.shared]", ConfigurationError, "plain folder name"),
        ("[sweep.arms.'../x']", ConfigurationError, "plain folder name"),
        ("[sweep]\nminutes = -1", ConfigurationError, "minutes"),
        ("", ConfigurationError, "no arms"),
    ],
)
def test_sweep_refuses_invalid_arms(
    lines: str, error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        sweep_of(tmp_path, text=TOML.partition("[sweep]")[0] + lines)


def scores(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return read


def test_sweep_runs_the_arms_from_one_warm_up_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, runs, _ = sweep_of(tmp_path)
    Recorder.calls.clear()
    run_sweep(base, runs[:1], 100)  # as if stopped by a budget or a kill
    run_sweep(base, runs, 100)
    folder = tmp_path / "job"
    shared = folder / "shared-warm-up" / "seed-0"
    for arm in ("paper", "outcome"):
        run = folder / arm / "seed-0"
        assert (run / "warm-up").resolve() == (shared / "warm-up").resolve()
        assert scores(run)["scores"]["after warm-up"] == scores(shared)["scores"]["after warm-up"]
        assert (run / "evaluation" / "after-rl").is_dir()
        assert [path.parent.name for path in (run / "rl" / "best").glob("*/score.json")]
        rows = (run / "rl" / "evaluations.jsonl").read_text().splitlines()
        assert [json.loads(row)["step"] for row in rows] == [1, 2]
    assert not (shared / "evaluation" / "after-rl").exists()
    assert json.loads((folder / "sweep.json").read_text())["paper"]["seeds"] == [0, 1]
    # Warm-up ran twice, once for each seed, and RL three times.
    assert Recorder.calls.count("begin warm-up") == 2
    assert Recorder.calls.count("begin rl") == 3
    before = (folder / "paper" / "seed-0" / "results.json").read_text()
    run_sweep(base, runs, 100)  # no run is left
    assert (folder / "paper" / "seed-0" / "results.json").read_text() == before
    assert Recorder.calls.count("begin rl") == 3
    assert "outcome" in capsys.readouterr().out


@pytest.mark.soak
def test_sweep_with_controls_continues_one_without(tmp_path: Path) -> None:
    text = TOML.replace("[evaluation]", '[evaluation]\ncontrols = ["no_tool"]')
    base, runs, _ = sweep_of(tmp_path, "--no-controls", text=text)
    run_sweep(base, runs[:1], 100)
    folder = runs[0].recipe.folder
    labels = scores(folder)["scores"].keys()
    base, runs, _ = sweep_of(tmp_path, text=text)
    Recorder.calls.clear()
    run_sweep(base, runs[:1], 100)
    assert "begin rl" not in Recorder.calls
    assert scores(folder)["scores"].keys() - labels == {"after rl, no_tool"}
    assert (folder / "report.html").exists()


@pytest.mark.soak
def test_changed_recipe_does_not_reuse_what_was_run(tmp_path: Path) -> None:
    base, runs, _ = sweep_of(tmp_path)
    run_sweep(base, runs[:1], 100)
    base, runs, _ = sweep_of(tmp_path, "--phases.warm-up.steps", "2")
    with pytest.raises(RunError, match=r"warm-up\.steps was 1 and is 2"):
        run_sweep(base, runs[1:2], 100)  # the new arm would start from the old warm-up


def test_mistake_in_the_last_arm_shows_before_the_first_is_run(tmp_path: Path) -> None:
    text = TOML + "[sweep.arms.wrong.changes.phases.rl]\nalgorithm_options = { clip = 1 }\n"
    base, runs, _ = sweep_of(tmp_path, text=text)
    with pytest.raises(ConfigurationError, match="clip"):
        run_sweep(base, runs, 100)
    assert not (tmp_path / "job").exists()


@pytest.mark.soak
def test_arm_that_fails_does_not_keep_the_others_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from visenv.algos.experiment import run_recipe, sweep

    def failing(recipe: Recipe, shared: Any = None) -> None:
        if recipe.runs.name == "paper":
            raise DivergedError("a gradient is not finite")
        run_recipe(recipe, shared)

    monkeypatch.setattr(sweep, "run_recipe", failing)
    base, runs, _ = sweep_of(tmp_path)
    run_sweep(base, runs[:2], 100)
    rows = json.loads((tmp_path / "job" / "sweep.json").read_text())
    assert (rows["paper"]["seeds"], rows["outcome"]["seeds"]) == ([], [0])
    assert "paper, seed 0 failed: a gradient is not finite" in capsys.readouterr().out


@pytest.mark.soak
def test_arms_beyond_the_budget_are_listed_as_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, runs, _ = sweep_of(tmp_path)
    run_sweep(base, [runs[0], runs[1]], 1e-6)  # any time exceeds this budget
    rows = json.loads((tmp_path / "job" / "sweep.json").read_text())
    assert (rows["paper"]["seeds"], rows["outcome"]["seeds"]) == ([0], [])
    assert "not run" in capsys.readouterr().out


@pytest.mark.soak
def test_sweep_of_named_arms_runs_only_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(TOML)
    train([str(path), "--sweep", "outcome", "--runs", str(tmp_path)])
    rows = json.loads((tmp_path / "job" / "sweep.json").read_text())
    assert (rows["paper"]["seeds"], rows["outcome"]["seeds"]) == ([], [0])
    assert (tmp_path / "job" / "shared-warm-up" / "seed-0").is_dir()  # as in the whole sweep
    assert "not run" in capsys.readouterr().out
    with pytest.raises(UnknownNameError, match="Did you mean 'outcome'"):
        train([str(path), "--sweep", "outcom", "--runs", str(tmp_path)])
