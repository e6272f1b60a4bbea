"""Tests `visenv train --env NAME`, which trains a tiny model on any environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from visenv.cli import main
from visenv.errors import UnknownNameError

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.algos.experiment.recipe_files import default_recipe

pytestmark = [
    pytest.mark.usefixtures("no_curves"),
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]

TOY, NO_ORACLE, NO_TEACHER = "visenv.testing.toy:make", "tests.no_oracle:make", "ArmVQA-v0"
SHORT = [
    *("--model.options.threads", "1", "--model.tokenizer-episodes", "8", "--trackers"),
    *("--phases.warm-up.steps", "2", "--phases.warm-up.demonstrations.batch-size", "2"),
    *("--phases.rl.steps", "1", "--phases.rl.rollouts.max-tokens", "12"),
    *("--phases.rl.rollouts.prompts-per-step", "1", "--phases.rl.rollouts.num-generations", "2"),
    *("--evaluation.episodes", "2", "--evaluation.max-tokens", "12"),
]


def trained(env: str, runs: Path, *words: str) -> dict[str, Any]:
    """Run the default recipe with a few steps, and return the saved recipe."""
    assert main(["train", "--env", env, "--runs", str(runs), *SHORT, *words]) == 0
    (folder,) = runs.iterdir()
    assert (folder / "report.html").exists()
    results = json.loads((folder / "results.json").read_text())
    of_teacher = ["teacher"] * (env == TOY)
    assert [*results["scores"]] == ["before training", *of_teacher, "after warm-up", "after rl"]
    saved: dict[str, Any] = json.loads((folder / "recipe.json").read_text())
    return saved


def test_environment_with_a_teacher_is_trained_on_its_demonstrations(tmp_path: Path) -> None:
    recipe = trained(TOY, tmp_path, "--phases.warm-up.demonstrations.episodes", "4")
    assert recipe["phases"]["warm-up"]["demonstrations"]["teacher"] == "default"
    assert recipe["environments"]["task"]["id"] == TOY
    assert [path.name for path in tmp_path.iterdir()] == ["visenv.testing.toy-make"]


@pytest.mark.soak
def test_environment_with_an_oracle_is_trained_on_its_demonstrations(tmp_path: Path) -> None:
    recipe = trained(NO_TEACHER, tmp_path, "--phases.warm-up.demonstrations.episodes", "4")
    demonstrations = recipe["phases"]["warm-up"]["demonstrations"]
    assert (demonstrations["teacher"], demonstrations["player"]) == ("", "oracle")


def test_environment_without_an_oracle_is_trained_on_the_best_random_episodes(
    tmp_path: Path,
) -> None:
    words = ["--phases.warm-up.demonstrations.episodes", "40"]
    recipe = trained(NO_ORACLE, tmp_path, *words)
    demonstrations = recipe["phases"]["warm-up"]["demonstrations"]
    assert (demonstrations["player"], demonstrations["top_share"]) == ("random", 0.1)
    assert trained(NO_ORACLE, tmp_path, *words, "--resume") == recipe


def test_many_random_episodes_are_filtered_by_default() -> None:
    demonstrations = default_recipe(NO_ORACLE).phases["warm-up"].demonstrations
    assert (demonstrations.episodes, demonstrations.top_share) == (4096, 0.1)
    assert default_recipe(TOY).phases["warm-up"].demonstrations.top_share == 1


def test_preset_tiny_is_used_unless_an_option_names_another() -> None:
    assert default_recipe("ZoomVQA-v0").environments["task"].options == {"preset": "tiny"}
    words = ["--environments.task.options.preset", "scenes"]
    assert default_recipe("ZoomVQA-v0", words).environments["task"].options == {"preset": "scenes"}
    assert default_recipe(TOY).environments["task"].options == {}


def test_options_override_the_chosen_demonstrations() -> None:
    words = ["--phases.warm-up.demonstrations.player", "random", "--name", "mine"]
    recipe = default_recipe(NO_TEACHER, words)
    assert recipe.phases["warm-up"].demonstrations.player == "random"
    assert recipe.name == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--env"], "--env needs the name of an environment"),
        (["--env", "--seed", "1"], "--env needs the name of an environment"),
        (["--env="], "--env needs the name of an environment"),
        (["zoom_tiny", "--env", TOY], "either a recipe or --env, got 'zoom_tiny'"),
        (["--env", "ZomVQA-v0"], "Did you mean 'visenv/ZoomVQA-v0'"),
        (["--env", "no_such_module:make"], "no_such_module"),
        (["--env=gymnasium.envs.classic_control:CartPoleEnv"], "does not extend VisEnv"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words, "--runs", str(tmp_path / "runs")]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_unknown_option_of_the_environment_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="latency"):
        default_recipe(TOY, ["--environments.task.options.latencie", "1"])
    with pytest.raises(UnknownNameError, match="called 'other'"):
        default_recipe(TOY, ["--environments.other.options.latency", "1"])
