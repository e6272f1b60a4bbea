"""Tests which settings of a run can change when it is resumed, and what is printed about them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments import few
from tests.faults.runs import results, train
from visenv.algos.trainer.changes import CHECKPOINT_SETTINGS, RECIPE_SETTINGS, compare
from visenv.errors import ConfigurationError, RunError

pytestmark = pytest.mark.component("torch")

RECIPE = """
name = "small"
[environments.scenes]
options = { preset = "tiny" }
[phases.warm-up]
algorithm = "sft"
steps = 3
demonstrations = { episodes = 4 }
[phases.rl]
steps = 7
[phases.more-sft]
algorithm = "sft"
control = true
begins_with = "warm-up"
as_long_as = "rl"
demonstrations = { episodes = 4 }
"""


# ----------------------------------------------------------------------------------- the rules


def settings(**changes: Any) -> dict[str, Any]:
    optimization = {"schedule": "constant", "learning_rate": 0.1, "tokens_per_batch": 10}
    return {"config": {"steps": 5, "seed": 0, "optimization": {**optimization, **changes}}}


def test_setting_that_changes_only_the_rounding_is_allowed_and_named() -> None:
    changes = compare(settings(), settings(tokens_per_batch=20), CHECKPOINT_SETTINGS)
    (said,) = changes.allowed
    assert said.startswith("config.optimization.tokens_per_batch was 10 and is 20. ")
    assert "may differ from those of an uninterrupted run: sums are rounded" in said
    assert not changes.refused


def test_setting_that_defines_the_run_is_refused() -> None:
    changes = compare(settings(), settings(learning_rate=0.2), CHECKPOINT_SETTINGS)
    assert changes.refused == ["config.optimization.learning_rate was 0.1 and is 0.2"]
    assert not changes.allowed


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("constant", "The results do not depend on it."),
        ("cosine", "the learning rate follows the schedule of the new number of steps"),
    ],
)
def test_other_number_of_steps_changes_the_results_only_with_a_schedule(
    schedule: str, said: str
) -> None:
    old = settings(schedule=schedule)
    new = json.loads(json.dumps(old))
    new["config"]["steps"] = 9
    (found,) = compare(old, new, CHECKPOINT_SETTINGS).allowed
    assert found.startswith("config.steps was 5 and is 9. ")
    assert said in found


def test_option_with_the_name_of_a_free_setting_is_refused() -> None:
    old: dict[str, Any] = {"phases": {"rl": {"options": {"steps": 3}}}}
    new: dict[str, Any] = {"phases": {"rl": {"options": {"steps": 4}}}}
    assert compare(old, new, RECIPE_SETTINGS).refused == ["phases.rl.options.steps was 3 and is 4"]


# -------------------------------------------------------------------------------- longer training


@pytest.mark.parametrize("schedule", few(["cosine", "constant"], 1))
def test_run_is_extended_by_more_steps(
    tmp_path: Path, schedule: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    straight = train(tmp_path / "straight", 5, schedule=schedule)
    train(tmp_path / "run", 3, schedule=schedule)
    capsys.readouterr()
    policy = train(tmp_path / "run", 5, schedule=schedule, resume=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "config.steps was 3 and is 5." in said
    same = policy.weights() == straight.weights()
    assert same == (schedule == "constant")
    assert ("may differ" in said) == (schedule == "cosine")
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]


def test_run_is_not_shortened_below_the_steps_that_it_took(tmp_path: Path) -> None:
    expected = results(tmp_path / "run", train(tmp_path / "run", 3))
    with pytest.raises(RunError, match="has taken 3 steps already, so steps must be at least 3"):
        train(tmp_path / "run", 2, resume=True)
    assert results(tmp_path / "run", train(tmp_path / "run", 3, resume=True)) == expected


def test_journal_of_an_extended_run_is_continued(tmp_path: Path) -> None:
    train(tmp_path / "run", 2)
    train(tmp_path / "run", 3, resume=True)
    saved = json.loads((tmp_path / "run/journal/run.json").read_text())
    assert saved["config"]["steps"] == 3


# ----------------------------------------------------------------------------------- recipes


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    """Return the recipe of a run whose folder exists, and in which all phases have ended."""
    from visenv.algos.experiment import read_recipe
    from visenv.algos.experiment.extension import write_recipe
    from visenv.algos.experiment.results import Results

    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    made = replace(read_recipe(path), runs=tmp_path / "runs", resume=True)
    made.folder.mkdir(parents=True)
    write_recipe(made)
    found = Results(made.folder / "results.json")
    for label in ("before training", "after warm-up", "after rl", "after rl, no_tool"):
        found.add(label, {})
    found.add("more-sft (control)", {})
    for name, steps in (("warm-up", 3), ("rl", 7), ("more-sft", 9)):
        (made.folder / name).mkdir()
        found.finish(name, steps, 1.0)
    (made.folder / "report.html").write_text("the end of the run")
    return made


def with_steps(recipe: Any, name: str, steps: int) -> Any:
    phases = {**recipe.phases, name: replace(recipe.phases[name], steps=steps)}
    return replace(recipe, phases=phases)


def results_of(recipe: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((recipe.folder / "results.json").read_text())
    return content


def test_longer_phase_continues_and_the_phase_that_is_as_long_too(recipe: Any) -> None:
    from visenv.algos.experiment.extension import is_extended
    from visenv.algos.experiment.folder import claimed

    longer = with_steps(recipe, "rl", 10)
    assert is_extended(longer)
    with claimed(longer):
        pass
    found = results_of(recipe)
    assert found["steps"] == {"warm-up": 3}
    assert list(found["scores"]) == ["before training", "after warm-up"]
    assert not (recipe.folder / "report.html").exists()  # a sweep would take the run for finished
    assert not is_extended(longer)
    assert json.loads((recipe.folder / "recipe.json").read_text())["phases"]["rl"]["steps"] == 10


@pytest.mark.parametrize("controls", [("no_tool",), ()])
def test_run_without_controls_is_extended_by_them(controls: tuple[str, ...], recipe: Any) -> None:
    from visenv.algos.experiment.extension import is_extended, write_recipe
    from visenv.algos.experiment.folder import claimed

    fewer = replace(recipe, evaluation=replace(recipe.evaluation, controls=controls))
    write_recipe(replace(fewer, controls=bool(controls)))
    assert not is_extended(replace(recipe, controls=False))
    wanted = replace(recipe, evaluation=replace(recipe.evaluation, controls=("no_tool", "blind")))
    before = results_of(recipe)
    assert is_extended(wanted)
    with claimed(wanted):
        pass
    assert results_of(recipe) == before
    assert not (recipe.folder / "report.html").exists()
    assert not is_extended(wanted)


def test_phase_whose_weights_were_used_is_not_extended(recipe: Any) -> None:
    from visenv.algos.experiment.folder import claimed

    before = results_of(recipe)
    said = r"phases\.warm-up\.steps cannot change, because the phase rl has started from warm-up"
    with pytest.raises(RunError, match=said), claimed(with_steps(recipe, "warm-up", 5)):
        pass
    assert results_of(recipe) == before
    assert (
        json.loads((recipe.folder / "recipe.json").read_text())["phases"]["warm-up"]["steps"] == 3
    )


def test_phase_is_not_shortened_below_the_steps_that_it_took(recipe: Any) -> None:
    from visenv.algos.experiment.folder import claimed

    said = r"phase rl has taken 7 steps already, so phases\.rl\.steps must be at least 7; got 4"
    with pytest.raises(RunError, match=said), claimed(with_steps(recipe, "rl", 4)):
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"executor": "threads"}, "may differ from those of an uninterrupted run: `ray` is"),
        ({"trackers": ()}, "The results do not depend on it."),
        ({"controls": False}, "The results do not depend on it."),
    ],
)
def test_setting_of_the_machine_is_allowed_and_printed(
    recipe: Any, change: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from visenv.algos.experiment.folder import check_folder, claimed

    changed = replace(recipe, **change)
    with claimed(changed):
        pass
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Changed setting: {next(iter(change))} was" in printed
    assert said in printed
    assert check_folder(changed) == []  # the new settings are saved
    assert results_of(recipe)["steps"] == {"warm-up": 3, "rl": 7, "more-sft": 9}


def test_other_checkpoint_interval_is_allowed(recipe: Any) -> None:
    from visenv.algos.experiment.folder import check_folder

    phase = recipe.phases["rl"]
    saving = replace(phase.saving, checkpoint_every=5, keep_checkpoints=1)
    changed = replace(recipe, phases={**recipe.phases, "rl": replace(phase, saving=saving)})
    assert len(check_folder(changed)) == 2


def test_other_data_is_refused(recipe: Any) -> None:
    from visenv.algos.experiment.folder import check_folder

    scenes = replace(recipe.environments["scenes"], data="vstar:/photos")
    with pytest.raises(RunError, match=r"environments\.scenes\.data was '' and is 'vstar:/photos'"):
        check_folder(replace(recipe, environments={"scenes": scenes}))


def test_names_of_phases_differ_on_every_file_system(recipe: Any) -> None:
    phases = {"rl": recipe.phases["rl"], "RL": recipe.phases["rl"]}
    with pytest.raises(ConfigurationError, match="'RL' and 'rl' are the same folder on some file"):
        replace(recipe, phases=phases)
