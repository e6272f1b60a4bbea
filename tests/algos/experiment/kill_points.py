"""Runs a recipe in processes that are killed at different points; test_kill.py starts this program.

Arguments: a folder, and the names of the points. Every run is a fork of this process, so that
packages are loaded once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo  # otherwise the first optimizer step loads it in every fork

from tests.algos.trainer.kill_points import dying, kill_each
from visenv.algos.experiment import (
    experiment,
    parts,
    read_recipe,
    recipe_path,
    report,
    run_recipe,
)
from visenv.algos.trainer import checkpoint
from visenv.registration import load

WORDS = [
    "--name", "job", "--no-controls", "--model.options.threads", "1",
    "--model.tokenizer-episodes", "2",
    "--phases.warm-up.steps", "2",
    "--phases.warm-up.demonstrations.episodes", "2",
    "--phases.warm-up.demonstrations.batch-size", "2",
    "--phases.rl.steps", "1",
    "--phases.rl.rollouts.prompts_per_step", "1", "--phases.rl.rollouts.num-generations", "2",
    "--phases.rl.rollouts.max-tokens", "8",
    "--evaluation.episodes", "1", "--evaluation.max-tokens", "8",
]  # fmt: skip


def train(runs: Path) -> None:
    """Run or resume the recipe."""
    words = [*WORDS, "--runs", str(runs)]
    if (runs / "job" / "recipe.json").exists():
        words.append("--resume")
    run_recipe(read_recipe(recipe_path("zoom_tiny"), words))


def points() -> dict[str, Callable[[], None]]:
    """Return the points at which a run is killed, as functions that install the kill, by name."""
    return {
        "validation": dying(parts, "evaluation_makers", 1),
        "warm-up": dying(torch.optim.AdamW, "step", 1, after=True),
        "first-evaluation": dying(experiment, "measure", 1),
        "evaluation": dying(experiment, "measure", 2, after=True),
        "checkpoint-of-rl": dying(checkpoint, "publish", 2),
        "report": dying(report, "write_report", 1),
    }


def load_packages() -> None:
    """Load what every fork would load: the policy and the architecture of its model."""
    import transformers

    load("policy", "transformers")
    _ = transformers.Qwen3VLForConditionalGeneration, transformers.Qwen3VLProcessor
    gc.freeze()  # collections in a fork would copy these pages


if __name__ == "__main__":
    load_packages()
    chosen = {name: points()[name] for name in sys.argv[2:]}
    kill_each(chosen, train, Path(sys.argv[1]))
