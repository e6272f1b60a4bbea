"""Tests bins, chunks and tasks, without a simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import visenv  # noqa: F401 - registers the environments
from visenv.envs.libero import make
from visenv.envs.libero.actions import ActionStatistics, decode, encode, read_statistics
from visenv.envs.libero.datasets.tasks import language, open_tasks, task_names
from visenv.envs.libero.presets import PRESETS, SUITES
from visenv.envs.libero.tools import TARGET, ActionChunkTool
from visenv.errors import ConfigurationError, ToolError
from visenv.simulators.settings import SimulatorSpec
from visenv.tools.base import Store

rows = st.lists(
    st.tuples(*[st.integers(0, 254)] * 6, st.integers(0, 1)).map(list), min_size=1, max_size=16
)


def test_bins_span_the_range_and_127_is_exactly_zero() -> None:
    assert decode([[0, 127, 254, 190, 127, 127, 0]]) == [[-1.0, 0.0, 1.0, 63 / 127, 0.0, 0.0, -1.0]]
    assert decode([[127] * 6 + [1]])[0][6] == 1.0


@given(rows)
def test_encode_is_the_inverse_of_decode(chunk: list[list[int]]) -> None:
    assert encode(decode(chunk)) == chunk


def test_statistics_stretch_the_bins_but_not_the_gripper() -> None:
    told = ActionStatistics((-0.5,) * 6 + (0.0,), (0.7,) * 6 + (1.0,), (True,) * 6 + (False,))
    # A bin is 1.2 / 255 wide: 0 is half a bin above q01, 254 half a bin below q99, 127 the middle.
    (row,) = decode([[0, 254, 127, 127, 127, 127, 1]], told)
    half = 1.2 / 255 / 2
    assert row == pytest.approx([-0.5 + half, 0.7 - half, 0.1, 0.1, 0.1, 0.1, 1.0], abs=1e-15)
    assert encode([row], told) == [[0, 254, 127, 127, 127, 127, 1]]


def test_integers_with_statistics_are_the_centers_of_openvlas_bins() -> None:
    # OpenVLA: 256 edges from -1 to 1, and the means of neighbors as centers.
    edges = np.linspace(-1, 1, 256)
    centers = (edges[:-1] + edges[1:]) / 2
    told = ActionStatistics((-1.0,) * 7, (1.0,) * 7, (True, True, True, False, False, False, False))
    rows = [[number] * 6 + [0] for number in range(255)]
    found = np.array(decode(rows, told))
    assert np.abs(found[:, :6] - centers[:, None]).max() < 1e-12
    assert encode(found.tolist(), told) == rows
    assert encode([[1.0] * 7, [-1.0] * 7], told) == [[254] * 6 + [1], [0] * 6 + [0]]


def test_statistics_are_read_from_the_file_of_a_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "dataset_statistics.json"
    mask = [True] * 6 + [False]
    facts = {"q01": [-1] * 7, "q99": [1] * 7, "mask": mask}
    file.write_text(json.dumps({"libero_goal_no_noops": {"action": facts}}))
    assert read_statistics(f"{file}:libero_goal_no_noops").mask == tuple(mask)
    for name in (f"{file}:other", f"{tmp_path}/none.json:a", "nothing"):
        with pytest.raises(ConfigurationError, match=r"dataset_statistics\.json"):
            read_statistics(name)


GOOD = [127] * 6 + [0]


@pytest.mark.parametrize(
    "actions",
    [
        [],
        [GOOD] * 17,
        [GOOD, GOOD[:6]],
        [[*GOOD, 0]],
        [[255, *GOOD[1:]]],
        [[-1, *GOOD[1:]]],
        [["127", *GOOD[1:]]],
        [[True, *GOOD[1:]]],
        [[127.5, *GOOD[1:]]],
        [[float("nan"), *GOOD[1:]]],
        [[*GOOD[:6], 2]],
        "127",
        [[10**5000, *GOOD[1:]]],
        None,
    ],
)
def test_chunk_that_is_invalid_is_refused_with_the_expected_form(actions: Any) -> None:
    act = ActionChunkTool(SimulatorSpec(TARGET), PRESETS["default"])
    with pytest.raises(ToolError, match="act takes actions") as caught:
        act.run({"actions": actions}, Store())
    assert len(str(caught.value)) < 2000


def test_130_tasks_have_the_language_of_the_benchmark() -> None:
    assert sum(len(task_names(suite)) for suite in SUITES) == 130
    assert language("put_the_bowl_on_the_plate") == "put the bowl on the plate"
    name = "KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet"
    assert language(name) == "close the top drawer of the cabinet"


def test_suite_has_every_task_at_every_state() -> None:
    assert len(open_tasks("libero_90")) == 90 * 50
    assert len(open_tasks("four_suites")) == 40 * 50
    tasks = open_tasks("libero_goal", tasks=[3], states=2)
    assert [tasks[index].id for index in range(len(tasks))] == [
        "libero_goal/3/0",
        "libero_goal/3/1",
    ]
    assert tasks[0].kind == "libero_goal"


@pytest.mark.parametrize(
    "options",
    [
        {"data": "libero_gaol"},
        {"data": "libero_goal", "tasks": [10]},
        {"data": "libero_goal", "states": 51},
        {"data": "libero_goal", "states": [-1]},
        {"preset": "huge"},
        {"actions": "joints"},
        {"actions": "native", "statistics": "a:b"},
        {"record": "all"},
        {"frame_side": 0},
        {"host_limits": {"memory": 1}},
    ],
)
def test_option_that_is_invalid_is_an_error_before_a_simulator_starts(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ConfigurationError):
        make(**options)


def test_default_samples_exist() -> None:
    solved = open_tasks("solved")
    samples = {solved[index].id for index in range(len(solved))}
    every = open_tasks("all")
    assert samples <= {every[index].id for index in range(len(every))}
    assert len(samples) == len(solved) >= 80


def test_interpreter_without_libero_names_the_command(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "bare", with_pip=False)
    env = make(interpreter=str(tmp_path / "bare/bin/python"), data="libero_goal")
    with pytest.raises(ConfigurationError, match="make simulators"):
        env.reset(seed=0)
    env.close()


def test_actions_near_the_middle_of_a_bin_are_named_by_it() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (100, 7))
    back = np.array(decode(encode(values.tolist())))
    assert np.abs(back[:, :6] - values[:, :6]).max() <= 0.5 / 127 + 1e-12
