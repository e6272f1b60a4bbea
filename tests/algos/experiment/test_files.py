"""Tests recipe files: parsing, changes by the command line, and errors that name the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.errors import ConfigurationError, UnknownNameError, VisenvError
from visenv.registration import RECIPES

pytestmark = pytest.mark.component("torch", "transformers")

SMALL = """
name = "small"
[environments.scenes]
options = { preset = "tiny" }
[phases.warm-up]
algorithm = "sft"
demonstrations = { episodes = 4, files = ["a.jsonl"] }
[phases.rl]
algorithm = "dr_grpo"
algorithm_options = { clip_high = 0.3 }
steps = 7
optimization = { learning_rate = 1 }
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "recipe.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def read(path: Path, *words: str) -> Any:
    from visenv.algos.experiment import read_recipe

    return read_recipe(path, words)


def test_recipe_is_read_with_the_types_of_its_fields(write: Callable[[str], Path]) -> None:
    recipe = read(write(SMALL))
    assert list(recipe.phases) == ["warm-up", "rl"]
    assert recipe.phases["rl"].steps == 7
    assert recipe.phases["rl"].optimization.learning_rate == 1.0
    assert recipe.phases["rl"].algorithm_options == {"clip_high": 0.3}
    assert recipe.phases["warm-up"].demonstrations.files == (Path("a.jsonl"),)
    assert recipe.environments["scenes"].id == "visenv/ZoomVQA-v0"
    assert recipe.folder == Path("runs/small")


def test_fields_of_a_recipe_are_options(write: Callable[[str], Path]) -> None:
    words = [
        "--name=other", "--seed", "3", "--executor", "threads",
        "--phases.rl.rollouts.prompts_per_step", "2",
        "--phases.warm-up.demonstrations.expert_rate", "0.5",
        "--environments.scenes.options.preset", "scenes",
        "--environments.scenes.options.turns=3",
        "--phases.rl.algorithm_options.clip_low", "0.1",
        "--evaluation.controls", "random_crop",
    ]  # fmt: skip
    recipe = read(write(SMALL), *words)
    assert (recipe.name, recipe.seed, recipe.executor) == ("other", 3, "threads")
    assert recipe.phases["rl"].rollouts.prompts_per_step == 2
    assert recipe.phases["rl"].steps == 7
    assert recipe.phases["warm-up"].demonstrations.expert_rate == 0.5
    assert recipe.environments["scenes"].options == {"preset": "scenes", "turns": 3}
    assert recipe.phases["rl"].algorithm_options == {"clip_high": 0.3, "clip_low": 0.1}
    assert recipe.evaluation.controls == ("random_crop",)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("phasess = 1", "field of .* called 'phasess'. Did you mean 'phases'"),
        ("[phases.rl.rollouts]\ngroup = 1", r"field of .*phases\.rl\.rollouts called 'group'"),
        ("[phases.rl.saving]\nkeep_checkpoints = 'x'", "saving.keep_checkpoints: .*'x'"),
        ("[phases.rl.rollouts]\nprompts_per_step = 0", r"rollouts: prompts_per_step must be"),
        ("[phases.two]\nalgorithm = 'sft'", r"phases\.two: A phase has demonstrations"),
        ("[phases.two]\nbegins_with = 'none'", "no phase before two called 'none'"),
        ("[phases.two]\nas_long_as = 'rl'", "as_long_as needs a phase of SFT"),
        ("[phases.two]\nsteps = 0", "steps must be"),
        (
            "[phases.two]\nenvironment_options.scene = { preset = 'tiny' }",
            "environment of two called 'scene'. Did you mean 'scenes'",
        ),
        ("[evaluation]\ntemperature = 0", "evaluation: temperature must be above 0"),
        ("[phases.two]\nreference = 'two'", "no phase before two called 'two'"),
        ("[environments.b]\nweight = -1", r"environments\.b: weight must be a number above 0"),
        ("[environments.b]\nweight = nan", "weight must be a number above 0"),
        ("[environments.b]\noptions = { preset = 'tiny' }", "environments .* are the same"),
        ("[environments.b]\noptions = 3", r"environments\.b\.options: .*dictionary"),
        ("[phases.'../x']", "must be a plain folder name"),
        ("[environments.b]\nid = 'ZoomVQA-v0'\noptions = { preset = 'tiny' }", "are the same"),
        ("[environments.b]\nrows = 'r.jsonl'", r"environments\.b: rows .* without data: set data"),
        ("[environments.'a/b']\nid = 'ArmIF-v0'", "must be a plain folder name"),
        ("[phases.evaluation]\nsteps = 1", "cannot be called 'evaluation'"),
        ("[phases.two]\ncontrol = true\n[phases.three]\nbegins_with = 'two'", "is no control"),
        ("[phases.two]\nalgorithm = 'sft'\ndemonstrations = { samples_of = 'two' }", "'two'"),
        ("model = 3", "model must be a table"),
        ("[model]\nlora_rank = -1", "lora_rank must be 0 or more"),
        ("executor = 'treads'", "executor: Input should be"),
        ("x = ", "is not TOML"),
    ],
)  # fmt: skip
def test_mistakes_name_the_file_and_the_field(
    write: Callable[[str], Path], change: str, says: str
) -> None:
    text = SMALL + change if change.startswith("[") else change + "\n" + SMALL
    with pytest.raises(ConfigurationError, match=says):
        read(write(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 'x'\n[phases.rl]", "at least one environment"),
        ("[environments.a]", "at least one phase"),
    ],
)
def test_recipe_needs_an_environment_and_a_phase(
    write: Callable[[str], Path], text: str, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        read(write(text))


def test_file_must_be_readable_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        read(tmp_path / "bytes.toml")


def test_samples_of_rl_need_a_mixture_by_weight(write: Callable[[str], Path]) -> None:
    text = SMALL + "[phases.two]\nalgorithm = 'sft'\ndemonstrations = { samples_of = 'rl' }"
    assert read(write(text)).phases["two"].demonstrations.samples_of == "rl"
    with pytest.raises(ConfigurationError, match="pass rates"):
        read(write("mixture = 'pass_rate'\n" + text))


def test_options_of_one_environment_stand_above_those_of_all(write: Callable[[str], Path]) -> None:
    text = SMALL.replace("[phases.rl]", "[phases.rl]\noptions = { reward = 'outcome', turns = 1 }")
    text += "[environments.b]\nid = 'ArmIF-v0'\n[phases.rl.environment_options]\nb = { turns = 2 }"
    phase = read(write(text)).phases["rl"]
    assert phase.options_of("scenes") == {"reward": "outcome", "turns": 1}
    assert phase.options_of("b") == {"reward": "outcome", "turns": 2}


def test_phase_of_sft_has_no_reference(write: Callable[[str], Path]) -> None:
    text = SMALL.replace("[phases.warm-up]", "[phases.warm-up]\nreference = 'model'")
    with pytest.raises(ConfigurationError, match="SFT has no reference policy"):
        read(write(text))


def test_recipe_has_a_phase_that_is_no_control(write: Callable[[str], Path]) -> None:
    text = SMALL
    for phase in ("[phases.warm-up]", "[phases.rl]"):
        text = text.replace(phase, f"{phase}\ncontrol = true")
    with pytest.raises(ConfigurationError, match="At least one phase must not be a control"):
        read(write(text))


@pytest.mark.parametrize(
    ("option", "nearest"),
    [
        ("--phases.rk.algorithm_options.clip_high", "rl"),
        ("--environments.scene.options.preset", "scenes"),
    ],
)
def test_option_of_a_misspelled_part_names_the_nearest(
    write: Callable[[str], Path], option: str, nearest: str
) -> None:
    with pytest.raises(UnknownNameError, match=nearest):
        read(write(SMALL), option, "1")


def test_list_option_replaces_the_list_of_the_recipe(write: Callable[[str], Path]) -> None:
    recipe = read(write(SMALL), "--trackers", "wandb", "mlflow")
    assert recipe.trackers == ("wandb", "mlflow")


def test_option_without_a_value_is_named(write: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigurationError, match=r"--environments.scenes.options.preset needs"):
        read(write(SMALL), "--environments.scenes.options.preset")


def test_shipped_recipes_are_found_by_name() -> None:
    from visenv.algos.experiment.recipe_files import recipe_path

    for name in RECIPES:
        assert read(recipe_path(name)).phases
    with pytest.raises(UnknownNameError, match="Did you mean 'zoom_tiny'"):
        recipe_path("zoom-tyni")
    assert recipe_path("visenv.recipes:zoom_tiny.toml") == recipe_path("zoom_tiny")
    with pytest.raises(ConfigurationError, match=r"is not in the package 'visenv\.recipes'"):
        recipe_path("visenv.recipes:zoom_tyni.toml")
    with pytest.raises(ConfigurationError, match="cannot be imported"):
        recipe_path("no_such_package:zoom_tiny.toml")


NAMES = st.sampled_from(
    ["phases", "environments", "rl", "steps", "algorithm", "demonstrations", "options", "model",
     "rollouts", "prompts_per_step", "evaluation", "metrics", "controls", "weight", "name",
     "begins_with"]
)  # fmt: skip
VALUES = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["", "sft", "x", "tiny"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table=st.dictionaries(NAMES, VALUES, max_size=4))
def test_tables_are_recipes_or_named_errors(table: dict[str, Any]) -> None:
    from visenv.algos.experiment.recipe import Recipe
    from visenv.algos.experiment.recipe_files import _built

    try:
        recipe = _built(Recipe, table, "recipe.toml")
    except VisenvError:
        return
    assert isinstance(recipe, Recipe)
