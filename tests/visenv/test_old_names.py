"""Tests old names of settings: saved ones are read, given ones are refused with the new name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from visenv.cli import main
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.old_names import check_options, renamed_option, with_new_names
from visenv.rollout.run_folder import read_run
from visenv.viewer.facts import run_facts

OLD: dict[str, Any] = {
    "environments": {
        "group_size": {
            "id": "visenv/ZoomVQA-v0",
            "options": {"stage": "tiny"},
            "evaluation_options": {"stage": "eval"},
        },
        "mine": {"id": "cards/Cards-v0", "options": {"stage": 2}},
    },
    "model": {"name": "tiny-arm", "options": {"name": "tiny-arm"}},
    "phases": {
        "rl": {
            "algorithm_options": {"kl_weight": 0.04},
            "demonstrations": {"care": 0.5},
            "rollouts": {
                "groups": 2,
                "group_size": 4,
                "retries": 1,
                "restarts": 3,
                "selection": {"distinct": False},
            },
            "optimisation": {"passes": 1, "minibatches": 2, "spike": None, "reference_every": 3},
        }
    },
}
NEW: dict[str, Any] = {
    "environments": {
        "group_size": {
            "id": "visenv/ZoomVQA-v0",
            "options": {"preset": "tiny"},
            "evaluation_options": {"preset": "eval"},
        },
        "mine": {"id": "cards/Cards-v0", "options": {"stage": 2}},
    },
    "model": {"name": "tiny", "options": {"name": "tiny-arm"}},
    "phases": {
        "rl": {
            "algorithm_options": {"kl_coef": 0.04},
            "demonstrations": {"expert_rate": 0.5},
            "rollouts": {
                "prompts_per_step": 2,
                "num_generations": 4,
                "episode_retries": 1,
                "engine_restarts": 3,
                "selection": {"dynamic_sampling": False},
            },
            "optimization": {
                "num_epochs": 1,
                "num_minibatches": 2,
                "max_grad_norm_ratio": None,
                "ref_sync_steps": 3,
            },
        }
    },
}


def test_saved_settings_get_the_new_names_and_names_of_the_user_stay() -> None:
    assert with_new_names(OLD) == NEW


def test_new_settings_stay_as_they_are() -> None:
    assert with_new_names(NEW) == NEW


def test_checkpoint_names_the_class_of_its_episode_source() -> None:
    old = {"episodes": {"from": "Ahead", "in_step": 8}, "algorithm": {"name": "GRPO"}}
    assert with_new_names(old)["episodes"] == {"from": "AsyncRolloutSource", "in_step": 8}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--group-size", "--num-generations"),
        ("--group_size", "--num-generations"),
        ("--phases.rl.optimisation.passes", "--phases.rl.optimization.num-epochs"),
        ("--phases.rl.rollouts.groups", "--phases.rl.rollouts.prompts-per-step"),
        ("--phases.group-size.steps", None),
        ("--phases.rl.rollouts.prompts-per-step", None),
        ("--retries", None),
        ("group_size=4", None),
        ("--episodes", None),
    ],
)
def test_renamed_option(old: str, new: str | None) -> None:
    assert renamed_option(old) == new


def test_renamed_option_of_a_command() -> None:
    assert renamed_option("--episodes", "rollout") == "--groups"
    assert renamed_option("--episodes", "eval") is None


def test_option_with_an_old_name_is_refused_and_the_new_one_suggested() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean '--num-generations'"):
        check_options(["--episodes", "2", "--group-size=4"])
    with pytest.raises(ConfigurationError, match="Did you mean '--groups'"):
        check_options(["--episodes=2"], "rollout")


def test_command_line_suggests_the_new_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollout", "ZoomVQA-v0", "--group-size", "2"]) == 1
    assert "Did you mean '--num-generations'?" in capsys.readouterr().err
    assert main(["rollout", "ZoomVQA-v0", "--episodes", "2"]) == 1
    assert "Did you mean '--groups'?" in capsys.readouterr().err


@pytest.mark.parametrize("env", ["ZoomVQA-v0", "ArmDoc-v0", "House-v0", "ArgosImage-v0"])
def test_old_option_stage_is_refused_and_preset_suggested(
    env: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--option", "stage=tiny", "--out", str(tmp_path)]
    assert main(["rollout", env, *words]) == 1
    said = capsys.readouterr().err
    assert "called 'stage'. Did you mean 'preset'?" in said


@pytest.mark.component("torch", "transformers")
def test_recipe_with_the_old_option_stage_is_refused_and_preset_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        '[environments.zoom]\nid = "visenv/ZoomVQA-v0"\noptions = { stage = "tiny" }\n'
        '[phases.rl]\nalgorithm = "grpo"\nsteps = 1\n'
    )
    assert main(["train", str(recipe), "--runs", str(tmp_path / "runs")]) == 1
    assert "called 'stage'. Did you mean 'preset'?" in capsys.readouterr().err


def test_saved_episodes_with_the_old_option_stage_are_rescored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--option", "preset=tiny", "--groups", "2", "--out", str(tmp_path)]
    assert main(["rollout", "ZoomVQA-v0", *words]) == 0
    file, old = tmp_path / "episodes.jsonl", tmp_path / "old.jsonl"
    lines = file.read_text(encoding="utf-8")
    assert lines.count('\\"preset\\": \\"tiny\\"') == 2
    old.write_text(lines.replace('\\"preset\\": ', '\\"stage\\": '), encoding="utf-8")
    capsys.readouterr()
    assert main(["rescore", str(old)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "equal: 2"
    assert main(["rescore", str(old), "--option", "stage=tiny"]) == 1
    assert "Did you mean 'preset'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"), [("kl_weight", "kl_coef"), ("care", "expert_rate"), ("passes", "num_epochs")]
)
def test_old_name_gets_the_new_one_as_a_suggestion(old: str, new: str) -> None:
    error = UnknownNameError("option", old, ["clip_low", new, "passed", "carets"])
    assert f"Did you mean {new!r}?" in str(error)


def test_record_of_an_old_rollout_is_read(tmp_path: Path) -> None:
    settings = {
        "command": "rollout",
        "env": "visenv/ZoomVQA-v0",
        "option": {"stage": "tiny"},
        "episodes": 2,
        "group_size": 4,
        "policy_option": {"care": 0.5},
    }
    record = {"format": 1, "settings": settings, "sessions": []}
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert read_run(tmp_path)["settings"] == {
        "command": "rollout",
        "env": "visenv/ZoomVQA-v0",
        "option": {"preset": "tiny"},
        "groups": 2,
        "num_generations": 4,
        "policy_option": {"expert_rate": 0.5},
    }


def test_viewer_shows_old_settings_under_the_new_names(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(json.dumps(OLD), encoding="utf-8")
    settings = run_facts(tmp_path, [])["settings"]
    assert settings["phases.rl.rollouts.num_generations"] == "4"
    assert "phases.rl.rollouts.group_size" not in settings
