"""Tests tables 3, 4 and 8 of Argos: one command, a column per subset, a row without vision."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from visenv.cli import main
from visenv.envs.embodied.suites import (
    EB_ALFRED,
    EB_ALFRED_SCENES,
    EB_HABITAT,
    EB_HABITAT_SCENES,
)
from visenv.envs.embodied.world.tasks import SUBSETS
from visenv.episodes import read_episodes
from visenv.evaluation.suite import Suite, SuiteColumn
from visenv.grammar.plan import TEXT_KEYS

SMALL = Suite(
    "Two subsets of House",
    tuple(
        SuiteColumn(subset, "visenv/House-v0", options={"subset": subset, "split": "eval"})
        for subset in ("base", "visual_appearance")
    ),
    metric="success",
    controls=("no_vision",),
    episodes=2,
    repeats=2,
    temperature=0.6,
)
NAME = "tests.envs.embodied.test_suites:SMALL"


@pytest.mark.parametrize("suite", [EB_ALFRED, EB_HABITAT])
def test_cell_is_the_mean_of_150_held_out_episodes_at_the_papers_temperature(
    suite: Suite,
) -> None:
    assert [column.options["subset"] for column in suite.columns] == [*SUBSETS]
    assert {column.options["split"] for column in suite.columns} == {"eval"}
    assert [column.name for column in suite.columns] == [
        "Base", "Common", "Complex", "Spatial", "Visual", "Long"]  # fmt: skip
    assert suite.episodes is not None
    assert suite.episodes * suite.repeats == 150
    assert suite.temperature == 0.6
    assert suite.controls == ("no_vision",)


@pytest.mark.parametrize(
    ("suite", "name", "simulator"),
    [(EB_ALFRED_SCENES, "eb_alfred", "thor"), (EB_HABITAT_SCENES, "eb_habitat", "habitat")],
)
def test_columns_of_the_published_scenes_name_data_set_and_simulator(
    suite: Suite, name: str, simulator: str
) -> None:
    assert suite.folders == [name]
    assert [column.data for column in suite.columns] == [
        f"{name}:{{{name}}}?subset={subset}" for subset in SUBSETS
    ]
    assert {column.options["simulator"] for column in suite.columns} == {simulator}
    assert {column.options["n_shots"] for column in suite.columns} == {10}
    assert (suite.episodes, suite.repeats, suite.temperature) == (50, 3, 0.6)


@pytest.mark.component("mujoco", "osmesa")
def test_table_command_prints_each_policy_with_and_without_vision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = json.dumps(dict.fromkeys(TEXT_KEYS, "") | {"executable_plan": []})
    turns = shlex.quote(f"turns={json.dumps([nothing])}")
    direct = f"direct policy=visenv.policies.scripted:ScriptedPolicy prompts=embodied {turns}"
    words = ["suite", NAME, "--row", "oracle", "--row", direct, "--out", str(tmp_path)]
    assert main(words) == 0
    table = json.loads((tmp_path / "suite.json").read_text())
    rows = {row["label"]: row for row in table["rows"]}
    assert [*rows] == ["oracle", "oracle, no_vision", direct, f"{direct}, no_vision"]
    assert rows["oracle"]["average"][0] == 1.0  # the oracle knows the goal, also without vision
    assert rows["oracle, no_vision"]["average"][0] == 1.0
    assert rows[direct]["average"][0] == rows[f"{direct}, no_vision"]["average"][0] == 0.0
    assert {column["episodes"] for row in table["rows"] for column in row["columns"]} == {4}
    page = (tmp_path / "suite.md").read_text()
    assert "| success, % | base | visual_appearance | Avg. |" in page
    assert page in capsys.readouterr().out
    folder = tmp_path / "oracle" / "visual-appearance"
    seen = [*read_episodes(folder / "episodes.jsonl")]
    blind = [*read_episodes(folder / "no_vision" / "episodes.jsonl")]
    assert [each.seed for each in seen] == [each.seed for each in blind]
    assert all((each.images[0].pixels == 128).all() for each in blind)
    assert not any((each.images[0].pixels == 128).all() for each in seen)
    run = json.loads((folder / "run.json").read_text())
    assert run["settings"]["temperature"] == 0.6


@pytest.mark.component("mujoco", "osmesa")
def test_defaults_of_a_suite_can_be_changed(tmp_path: Path) -> None:
    words = ["suite", NAME, "--episodes", "1", "--repeats", "1", "--temperature", "0"]
    assert main([*words, "--option", "preset=tiny", "--out", str(tmp_path)]) == 0
    [oracle, _] = json.loads((tmp_path / "suite.json").read_text())["rows"]
    assert [column["episodes"] for column in oracle["columns"]] == [1, 1]
    run = json.loads((tmp_path / "base" / "run.json").read_text())
    assert run["settings"]["temperature"] == 0
