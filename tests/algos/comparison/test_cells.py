"""Tests the files of cells, and the tasks that are derived from recipes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.algos.comparison.cells import TASK, make_cell
from visenv.algos.comparison.cells import cell_file, read_cell, read_cells
from visenv.algos.comparison.command import planned
from visenv.algos.comparison.run import equal_steps
from visenv.algos.comparison.tasks import (
    QUICK_TASKS,
    TASKS,
    filtered_sft,
    read_task,
    with_algorithm,
)
from visenv.algos.experiment.recipe_files import recipe_path
from visenv.checksums import sealed
from visenv.errors import ConfigurationError, DataError, RunError, UnknownNameError

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def test_written_cells_are_read_back(tmp_path: Path) -> None:
    cells = [
        replace(make_cell("grpo"), num_generations=4),
        make_cell("my_module:Mine", seed=1),
        replace(make_cell("rloo"), teacher=None),
    ]
    for cell in cells:
        cell.write(tmp_path)
    assert read_cells(tmp_path) == cells
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.glob("*/*"))] == [
        "grpo-groups-of-4/zoom_vqa-seed-0.json",
        "my_module-Mine/zoom_vqa-seed-1.json",
        "rloo/zoom_vqa-seed-0.json",
    ]


def test_cells_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    for name, settings in (("grpo", "a"), ("rloo", "b")):
        make_cell(name, settings=settings).write(tmp_path)
    with pytest.raises(DataError, match="different settings"):
        read_cells(tmp_path)


def test_changed_cell_raises(tmp_path: Path) -> None:
    make_cell(greedy=0.5).write(tmp_path)
    path = cell_file(tmp_path, "grpo", "zoom_vqa", 0)
    path.write_text(path.read_text().replace("0.5", "0.9"))
    with pytest.raises(DataError, match="damaged"):
        read_cell(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cell")


@given(field=st.sampled_from(sorted(asdict(make_cell()))), value=JSON)
def test_cell_with_any_value_is_read_or_raises(field: str, value: object, folder: Path) -> None:
    path = folder / "cell.json"
    path.write_text(json.dumps(sealed({**asdict(make_cell()), field: value})))
    try:
        assert 0 <= read_cell(path).final.greedy <= 1
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017 - most values raise, some are valid


def test_filtered_sft_takes_as_many_processor_seconds_as_grpo() -> None:
    # The warm-up took 5 s for 10 steps, so 3 s are 6 steps.
    assert equal_steps(make_cell()) == 6


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_recipes_with_a_warm_up_and_one_phase_of_rl(name: str) -> None:
    task = read_task(name)
    warm_up, training = task.recipe.phases.values()
    assert warm_up.is_sft
    assert (training.algorithm, training.steps) == ("grpo", TASKS[name].steps)
    assert not task.recipe.evaluation.controls


def test_quick_comparison_has_two_tasks_and_one_seed() -> None:
    plans = planned([], [], [], [], quick=True)
    assert {(plan.task.name, plan.seed) for plan in plans} == {(name, 0) for name in QUICK_TASKS}


def test_only_tasks_with_its_demonstrations_have_filtered_sft() -> None:
    plans = planned([], [], [0], [], quick=False)
    assert {*TASKS} == {plan.task.name for plan in plans if plan.algorithm == "filtered_sft"}
    other = str(recipe_path("groundlight_tiny"))  # has no controls
    plans = planned([], [other], [0], [], quick=False)
    assert [plan.algorithm for plan in plans] == ["grpo", "rejection_sampling"]


def test_sizes_of_groups_are_checked_before_training() -> None:
    with pytest.raises(ConfigurationError, match="128 episodes"):
        planned([], ["zoom_vqa"], [0], [7], quick=False)


def test_settings_differ_if_the_task_does_and_not_with_threads(tmp_path: Path) -> None:
    digests = []
    for text in (TASK, TASK + "every = 3", TASK.replace("steps = 2", "steps = 3", 1)):
        path = tmp_path / "task.toml"
        path.write_text(text)
        digests.append(read_task(str(path)).digest)
    path.write_text(TASK.replace("[phases.warm-up]", "options = { threads = 3 }\n[phases.warm-up]"))
    digests.append(read_task(str(path)).digest)
    assert len(set(digests)) == 3
    assert digests[0] == digests[-1]


def test_groups_of_another_size_have_the_same_episodes() -> None:
    phase = read_task("zoom_vqa").recipe.phases["training"]
    rollouts = with_algorithm(phase, "rloo", 4).rollouts
    assert (rollouts.prompts_per_step, rollouts.num_generations) == (32, 4)
    with pytest.raises(ConfigurationError, match="128 episodes"):
        with_algorithm(phase, "rloo", 7)


def test_unusable_tasks_raise(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="zoom_vqa"):
        read_task("zoom_vqu")
    path = tmp_path / "task.toml"
    path.write_text(TASK.partition("[phases.rl]")[0])
    with pytest.raises(ConfigurationError, match="end with a phase of RL"):
        read_task(str(path))
    path.write_text(TASK.replace("[phases.filtered-sft]", "[phases.other]"))
    with pytest.raises(RunError, match="no phase filtered-sft"):
        filtered_sft(read_task(str(path)), 3)
