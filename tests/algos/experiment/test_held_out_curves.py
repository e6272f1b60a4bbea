"""Tests the curves of the held-out score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure

from visenv.algos.experiment.curves import (
    HeldOutPoint,
    draw_held_out,
    held_out_curves,
    teacher_score,
)
from visenv.algos.experiment.recipe import Recipe
from visenv.algos.experiment.recipe_files import read_recipe

RECIPE = """
[environments.scenes]
id = "visenv/ZoomVQA-v0"
options = { preset = "tiny" }
[model]
name = "tiny"
[phases.warm-up]
algorithm = "sft"
steps = 3
demonstrations = { episodes = 8, batch_size = 4 }
[phases.rl]
algorithm = "grpo"
steps = 2
rollouts = { prompts_per_step = 2, num_generations = 5 }
[phases.control]
algorithm = "rejection_sampling"
control = true
begins_with = "warm-up"
steps = 2
rollouts = { prompts_per_step = 1, num_generations = 3 }
"""
HEADLINES = {"scenes": "accuracy"}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    path = tmp_path / "job.toml"
    path.write_text(RECIPE)
    return read_recipe(path, [])


def scored(**accuracy: float) -> dict[str, Any]:
    """Return the scores of each label."""
    return {
        label.replace("_", " "): {
            "scenes": {"greedy": SimpleNamespace(value={"accuracy": value}.get)}
        }
        for label, value in accuracy.items()
    }


def write_steps(folder: Path, seconds: Sequence[tuple[float, float]]) -> None:
    """Write the metrics of the steps of a phase: seconds of play and of learning."""
    folder.mkdir()
    rows = [
        {"step": step, "seconds/play": play, "seconds/learn": learn}
        for step, (play, learn) in enumerate(seconds, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_points_have_the_episodes_and_the_seconds_of_all_phases_before(
    recipe: Recipe, tmp_path: Path
) -> None:
    write_steps(tmp_path / "warm-up", [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0)])
    write_steps(tmp_path / "rl", [(1.0, 2.0), (3.0, 4.0)])
    write_steps(tmp_path / "control", [(0.5, 0.5), (0.5, 0.5)])
    (tmp_path / "rl" / "evaluations.jsonl").write_text(
        '{"step": 0, "eval/headline": 0.9}\n'
        '{"step": 1, "eval/headline": 0.5}\n'
        '{"step": 2, "eval/headline": 0.7}\n'
    )
    results: Any = SimpleNamespace(
        scores=scored(before_training=0.0, after_rl=0.75)
        | {"after warm-up": scored(x=0.25)["x"], "control (control)": scored(x=0.6)["x"]},
        steps={"warm-up": 3, "rl": 2, "control": 2},
    )
    curves = held_out_curves(recipe, tmp_path, results, HEADLINES)
    assert curves == {
        # 3 steps with 4 demonstrations each, 1 + 2 + 3 s.
        "warm-up": [HeldOutPoint(0, 0.0, 0.0), HeldOutPoint(12, 6.0, 0.25)],
        # 10 episodes in a step. The score after the phase replaces that of the last step.
        "rl": [
            HeldOutPoint(12, 6.0, 0.25),
            HeldOutPoint(22, 9.0, 0.5),
            HeldOutPoint(32, 16.0, 0.75),
        ],
        "control": [HeldOutPoint(12, 6.0, 0.25), HeldOutPoint(18, 8.0, 0.6)],
    }


def test_phase_that_did_not_finish_has_no_curve(recipe: Recipe, tmp_path: Path) -> None:
    write_steps(tmp_path / "warm-up", [(0.0, 1.0)] * 3)
    scores = scored(before_training=0.0) | {"after warm-up": scored(x=0.25)["x"]}
    results: Any = SimpleNamespace(scores=scores, steps={"warm-up": 3})
    assert [*held_out_curves(recipe, tmp_path, results, HEADLINES)] == ["warm-up"]


def test_score_of_the_teacher_is_the_headline_or_none() -> None:
    results: Any = SimpleNamespace(scores=scored(teacher=0.39))
    assert teacher_score(results, HEADLINES) == 0.39
    none: Any = SimpleNamespace(scores={})
    assert teacher_score(none, HEADLINES) is None


def test_both_charts_have_each_phase_and_the_line_of_the_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[tuple[str, list[float], list[float]]]] = []
    save = Figure.savefig

    def saved(figure: Figure, *args: Any, **options: Any) -> None:
        for chart in figure.axes:
            lines = chart.get_lines()
            drawn.append(
                [(str(x.get_label()), [*x.get_xdata()], [*x.get_ydata()]) for x in lines]  # type: ignore[misc]
            )
        save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", saved)
    picture = tmp_path / "curves.png"
    draw_held_out(
        {"rl": [HeldOutPoint(0, 0.0, 0.2), HeldOutPoint(64, 8.0, 0.9)]}, 0.39, picture, "accuracy"
    )
    episodes, seconds = drawn
    assert episodes[0] == ("rl", [0, 64], [0.2, 0.9])
    assert seconds[0] == ("rl", [0.0, 8.0], [0.2, 0.9])
    assert [chart[1][0] for chart in drawn] == ["teacher"] * 2
    assert {*episodes[1][2]} == {0.39}
    assert picture.read_bytes().startswith(b"\x89PNG")
