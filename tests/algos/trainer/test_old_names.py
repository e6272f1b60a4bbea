"""Tests old names of settings: saved runs with them resume."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.algos.trainer.journal import EpisodeJournal
from visenv.checksums import sealed, unsealed
from visenv.errors import RunError

CONFIG = TrainerConfig(
    steps=2,
    rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3),
    optimization=OptimizationConfig(learning_rate=0.02, schedule="cosine"),
)
SMALL = """
name = "small"
[environments.scenes]
options = { preset = "tiny" }
[phases.rl]
steps = 7
"""

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_checkpoint_with_old_names_is_continued(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=folder).train(toy.Echo)
    states = list((folder / "checkpoints").glob("step_*/state.json"))
    assert states
    for path in states:
        state = json.loads(path.read_text(encoding="utf-8"))
        identity = state["identity"]
        config, rollouts = identity["config"], identity["config"]["rollouts"]
        config["optimisation"] = config.pop("optimization")
        for new, old in (("num_epochs", "passes"), ("ref_sync_steps", "reference_every")):
            config["optimisation"][old] = config["optimisation"].pop(new)
        rollouts["groups"] = rollouts.pop("prompts_per_step")
        rollouts["group_size"] = rollouts.pop("num_generations")
        rollouts["selection"] |= {"spare_groups": 0, "early_groups": 0, "spare_members": 0}
        identity["algorithm"]["kl_weight"] = identity["algorithm"].pop("kl_coef")
        assert identity["episodes"]["from"] == "RolloutSource"
        identity["episodes"]["from"] = "Played"
        path.write_text(json.dumps(sealed(state)), encoding="utf-8")
    trainer = Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=folder, resume=True)
    trainer.train(toy.Echo)
    assert trainer.step == 2


def test_journal_with_old_names_is_continued(tmp_path: Path) -> None:
    EpisodeJournal(tmp_path, {"config": {"rollouts": {"groups": 2, "group_size": 4}}}, exact=False)
    now = {"config": {"rollouts": {"prompts_per_step": 2, "num_generations": 4}}}
    EpisodeJournal(tmp_path, now, exact=False)
    with pytest.raises(RunError, match="a run with other settings"):
        EpisodeJournal(tmp_path, {"config": {"rollouts": {"prompts_per_step": 3}}}, exact=False)


def test_run_folder_with_old_names_is_resumed(recipe_file: Path, tmp_path: Path) -> None:
    from visenv.algos.experiment import read_recipe
    from visenv.algos.experiment.folder import check_folder, claimed

    recipe = replace(read_recipe(recipe_file), runs=tmp_path, resume=True)
    with claimed(replace(recipe, resume=False)) as folder:
        path = folder / "recipe.json"
        text = json.dumps(unsealed(json.loads(path.read_text(encoding="utf-8"))))
        for new, old in (("optimization", "optimisation"), ("prompts_per_step", "groups")):
            assert f'"{new}"' in text
            text = text.replace(f'"{new}"', f'"{old}"')
        path.write_text(text, encoding="utf-8")
    check_folder(recipe)
    with pytest.raises(RunError, match=r"seed was 0 and is 8"):
        check_folder(replace(recipe, seed=8))
