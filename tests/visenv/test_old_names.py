"""Tests old names of settings: files of earlier versions are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.checksums import without_checksums
from visenv.cli import main
from visenv.old_names import with_new_names
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
                "selection": {"distinct": False, "early_groups": 0, "spare_members": 2},
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
                "selection": {"dynamic_sampling": False, "spare_members": 2},
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


def test_saved_episodes_with_the_old_option_stage_are_rescored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--option", "preset=tiny", "--groups", "2", "--out", str(tmp_path)]
    assert main(["rollout", "ZoomVQA-v0", *words]) == 0
    file, old = tmp_path / "episodes.jsonl", tmp_path / "old.jsonl"
    lines = without_checksums(file.read_text(encoding="utf-8"))
    assert lines.count('\\"preset\\": \\"tiny\\"') == 2
    old.write_text(lines.replace('\\"preset\\": ', '\\"stage\\": '), encoding="utf-8")
    capsys.readouterr()
    assert main(["rescore", str(old)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "equal: 2"


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


def test_commands_with_old_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rollout", "ZoomVQA-v0", "--group-size", "2"])
    assert ended.value.code == 2
    words = ["eval", "ZoomVQA-v0", "--policy", "oracle", "--episodes", "1"]
    assert main([*words, "--option", "stage=tiny"]) == 1
    assert "stage" in capsys.readouterr().err
