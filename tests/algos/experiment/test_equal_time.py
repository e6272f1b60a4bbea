"""Tests the number of steps of a control that gets as much time as RL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from visenv.algos.experiment import Recipe, read_recipe, recipe_path
from visenv.algos.experiment.results import steps_as_long

pytestmark = pytest.mark.component("torch")


def write_steps(folder: Path, steps: Sequence[tuple[float, ...]]) -> None:
    """Write the seconds of play, of learning and of the processor, if given, of each step."""
    folder.mkdir(parents=True)
    names = ("seconds/play", "seconds/learn", "seconds/processor")
    rows = [
        {"step": step, **dict(zip(names, seconds, strict=False))}
        for step, seconds in enumerate(steps, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return read_recipe(recipe_path("zoom_tiny"), [])


def count(recipe: Recipe, folder: Path, sampling: float = 0.0, *, on_cpu: bool = True) -> int:
    results: Any = SimpleNamespace(
        steps={"warm-up": 2, "rl": 3}, sampling_seconds={"filtered-sft": sampling}
    )
    return steps_as_long("filtered-sft", recipe, folder, results, on_cpu=on_cpu)


def test_control_gets_the_processor_seconds_of_rl_on_a_cpu(recipe: Recipe, tmp_path: Path) -> None:
    write_steps(tmp_path / "warm-up", [(0.0, 1.0, 2.0), (0.0, 2.0, 2.0)])
    write_steps(tmp_path / "rl", [(5.0, 1.0, 3.0), (5.0, 1.0, 3.0), (5.0, 1.0, 3.5)])
    assert count(recipe, tmp_path) == 5  # 9.5 / 2 = 4.75
    assert count(recipe, tmp_path, sampling=2.0) == 4  # 7.5 / 2 = 3.75
    # By the clock, 18 s of RL and 1.5 s a step of SFT.
    assert count(recipe, tmp_path, on_cpu=False) == 12
    engine = replace(recipe, sampler=replace(recipe.sampler, name="vllm"))
    assert count(engine, tmp_path) == 12


def test_run_of_an_earlier_version_without_processor_seconds_is_continued_by_the_clock(
    recipe: Recipe, tmp_path: Path
) -> None:
    write_steps(tmp_path / "warm-up", [(0.0, 1.0), (0.0, 2.0)])
    write_steps(tmp_path / "rl", [(5.0, 1.0), (5.0, 1.0, 3.0), (5.0, 1.0, 3.5)])
    assert count(recipe, tmp_path) == 12


def test_control_takes_at_least_one_step(recipe: Recipe, tmp_path: Path) -> None:
    write_steps(tmp_path / "warm-up", [(0.0, 9.0, 9.0)] * 2)
    write_steps(tmp_path / "rl", [(0.5, 0.5, 1.0)] * 3)
    assert count(recipe, tmp_path) == 1
