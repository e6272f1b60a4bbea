"""Tests that a trainer writes through no link in the folder of a run that somebody sent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.algos import toy
from tests.algos.runs import Sloped
from tests.links import outputs, written_through_links
from visenv.algos.trainer import HeldOut, RolloutConfig, SavingConfig, Trainer, TrainerConfig

pytestmark = [
    pytest.mark.attack("files: nothing is written through a link"),
    pytest.mark.component("torch", "tensorboard"),
    pytest.mark.slow,
]

HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=1, max_tokens=3, every=1)


def train(folder: Path, steps: int) -> None:
    """Train for some steps, or continue a run."""
    config = TrainerConfig(
        steps=steps,
        rollouts=RolloutConfig(prompts_per_step=1, num_generations=2, max_tokens=3),
        saving=SavingConfig(checkpoint_every=1, episodes_every=1),
    )
    resume = (folder / "metrics.jsonl").exists()
    trainer = Trainer(
        toy.ToyPolicy(), Sloped(kl_coef=0.1), config, folder=folder, resume=resume,
        held_out=HELD_OUT,
    )  # fmt: skip
    trainer.train(toy.Echo)


def test_trainer_follows_no_link_when_it_continues_a_run(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    names = outputs(lambda folder: train(folder, 2), tmp_path / "first")
    assert {
        *("run.lock", "metrics.jsonl", "evaluations.jsonl", "journal/", "journal/run.json"),
        *("checkpoints/", "checkpoints/step_000002/", "reference/", "best/", "episodes/"),
        *("episodes/images/", "tensorboard/"),
    } <= {*names}
    in_new_folders = re.compile(r"(checkpoints|reference|best)/step_\d+/.+")
    names = [name for name in names if not in_new_folders.match(name)]
    names += ["checkpoints/.step_000002/", "best/.step_000002/", "journal/step_000001/"]

    def received(folder: Path) -> None:
        shutil.copytree(tmp_path / "sent", folder, dirs_exist_ok=True)

    train(tmp_path / "sent", 1)
    found = written_through_links(
        lambda folder: train(folder, 2), received, names, tmp_path / "runs"
    )
    assert [*found] == []
