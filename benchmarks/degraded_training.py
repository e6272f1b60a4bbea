"""Trains a tiny model by GRPO on degraded scenes of MagsZoom, once with each magnifier.

    python benchmarks/degraded_training.py --out runs/degraded_training

This is the ablation of the magnifier (Mags-RL, §4.3) in scenes in which a network can help. The
model knows clean signs before it sees degraded ones, as a pretrained model does. For each seed:

1. The vision tower of a new tiny model learns to name clean signs at the size of a magnifier's
   output, and to say where the sign of a scene is (`pretrain`).
2. SFT on demonstrations of the oracle in clean scenes teaches the two turns.
3. GRPO with the reward of stage 1 trains this model in degraded scenes, with each magnifier. Before
   GRPO, the model has never seen a degraded or magnified crop.

The table shows held-out episodes before and after GRPO. Finished runs are not repeated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import transformers
import tyro
from torch import nn

import visenv  # noqa: F401 - registers the environments
from visenv.algos.experiment import Recipe, run_recipe
from visenv.algos.experiment.config import (
    DemonstrationConfig,
    EnvironmentConfig,
    EvaluationConfig,
    ModelConfig,
)
from visenv.algos.experiment.recipe import Phase
from visenv.algos.trainer import OptimizationConfig, RolloutConfig
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.world import MagsWorld
from visenv.images import fit
from visenv.policies.transformers.checkpoint import save_model
from visenv.policies.transformers.tiny import tiny
from visenv.types import Pixels

ID = "visenv/MagsZoom-v0"
CLEAN: dict[str, Any] = {"preset": "tiny-degraded", "scenes": "tiny-clean", "magnifier": "lanczos"}
VIEW, CELLS = 96, 4
"""Side of the view and of a cell of a clean scene in pixels, and cells in a row of the view."""

SIGNS = 4
"""Number of signs in the scenes from which clean crops are cut."""

METRICS = ("accuracy", "reward", "zoomed", "thought_words")
"""Columns of the table."""

_STREAM = 0xC41F
_SCENES = 1200
"""Number of scenes from which crops are cut, and of scenes that are viewed."""
_STEPS, _SFT_STEPS, _BATCH = 600, 200, 64


@dataclass(frozen=True)
class Options:
    """Train a tiny model in degraded scenes with each magnifier.

    Attributes:
        out: Folder of the models and runs.
        seeds: Seeds of the model, the demonstrations and the sampling.
        magnifiers: The magnifiers.
        steps: Number of steps of GRPO.
        episodes: Number of held-out episodes.
    """

    out: Path = Path("runs/degraded_training")
    seeds: tuple[int, ...] = (0, 1, 2)
    magnifiers: tuple[str, ...] = ("none", "resize", "lanczos", "small", "small-deblur")
    steps: int = 40
    episodes: int = 256


# ------------------------------------------------------------------------------ the known signs


@cache  # all seeds learn the same signs
def clean_crops() -> tuple[list[Pixels], list[str]]:
    """Return clean signs as large as a magnifier's output, and the numbers on them."""
    world = MagsWorld("tiny-clean", signs=(SIGNS, SIGNS))
    crops, numbers = [], []
    for scene in range(_SCENES):
        sample = world.sample(np.random.default_rng([_STREAM, 0, scene]))
        pixels = sample.images[0].pixels
        for sign in sample.truth_as(MagsTruth).signs:
            left, top = (int(edge) // VIEW * VIEW for edge in sign.box[:2])
            crops.append(pixels[top : top + VIEW, left : left + VIEW].copy())
            numbers.append(sign.answer)
    return crops, numbers


@cache
def views() -> tuple[list[Pixels], list[int]]:
    """Return views of clean scenes, and the cell of the sign in each."""
    world = MagsWorld("tiny-clean")
    shown, cells = [], []
    for scene in range(_SCENES):
        sample = world.sample(np.random.default_rng([_STREAM, 1, scene]))
        shown.append(fit(sample.images[0], VIEW * VIEW, VIEW).pixels.copy())
        left, top = (int(edge) // VIEW for edge in sample.truth_as(MagsTruth).signs[0].box[:2])
        cells.append(CELLS * top + left)
    return shown, cells


def pretrain(folder: Path, seed: int) -> Path:
    """Write a tiny model whose vision tower knows clean signs and their places.

    Args:
        folder: The folder of the model.
        seed: Seed of the weights and of the batches.

    Returns:
        The folder.
    """
    tiny(folder, lambda: gym.make(ID, **CLEAN).unwrapped, seed)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    tower, width = model.model.visual, model.config.text_config.hidden_size

    def features(images: list[Pixels]) -> torch.Tensor:
        inputs = processor(images=images, return_tensors="pt")
        output = tower(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])
        tokens: torch.Tensor = output.pooler_output
        return tokens.reshape(len(images), -1, width)  # [images, CELLS ** 2, width]

    (crops, numbers), (shown, cells) = clean_crops(), views()
    names = sorted(set(numbers))
    torch.manual_seed(seed)
    reader, finder = nn.Linear(width, len(names)), nn.Linear(CELLS**2 * width, CELLS**2)
    weights = [*tower.parameters(), *reader.parameters(), *finder.parameters()]
    optimizer = torch.optim.AdamW(weights, 2e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, _STEPS)
    rng = np.random.default_rng(seed)
    for _ in range(_STEPS):
        chosen = rng.integers(len(crops), size=_BATCH)
        read = reader(features([crops[place] for place in chosen]).mean(1))
        wanted = torch.tensor([names.index(numbers[place]) for place in chosen])
        loss = nn.functional.cross_entropy(read, wanted)
        chosen = rng.integers(len(shown), size=_BATCH)
        found = finder(features([shown[place] for place in chosen]).flatten(1))
        loss += nn.functional.cross_entropy(found, torch.tensor([cells[place] for place in chosen]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"Seed {seed}: the loss of the vision tower is {float(loss.detach()):.3f}.", flush=True)
    save_model(model.eval(), folder)
    return folder


# ------------------------------------------------------------------------------------ training


def warm_up(model: Path, folder: Path, seed: int) -> Path:
    """Teach the two turns by SFT in clean scenes; return the folder of the trained model."""
    phase = Phase(
        algorithm="sft",
        steps=_SFT_STEPS,
        demonstrations=DemonstrationConfig(episodes=1024, batch_size=_BATCH),
        optimization=OptimizationConfig(
            learning_rate=2e-3, schedule="cosine", warmup_steps=30, beta2=0.95, weight_decay=0.01
        ),
    )
    _run(folder, "warm-up", model, CLEAN, phase, 128, seed)
    *_, trained = sorted((folder / "warm-up/train/checkpoints").glob("*/policy"))
    return trained


def train(model: Path, folder: Path, magnifier: str, options: Options, seed: int) -> dict[str, Any]:
    """Train with a magnifier in degraded scenes, and return the scores by label."""
    phase = Phase(
        algorithm="grpo",
        algorithm_options={"clip_high": 0.2},
        steps=options.steps,
        rollouts=RolloutConfig(prompts_per_step=16, num_generations=8, max_tokens=84),
        optimization=OptimizationConfig(learning_rate=2e-4, warmup_steps=5, beta2=0.99),
    )
    degraded = {"preset": "tiny-degraded", "magnifier": magnifier}
    return _run(folder, magnifier, model, degraded, phase, options.episodes, seed)


def _run(
    folder: Path,
    name: str,
    model: Path,
    options: dict[str, Any],
    phase: Phase,
    episodes: int,
    seed: int,
) -> dict[str, Any]:
    """Run a recipe of one phase, or continue it, and return its scores by label."""
    recipe = Recipe(
        name=name,
        runs=folder,
        resume=(folder / name).exists(),
        seed=seed,
        environments={"scenes": EnvironmentConfig(ID, options)},
        model=ModelConfig(str(model), options={"threads": 1}),
        phases={"train": phase},
        evaluation=EvaluationConfig(
            episodes=episodes,
            max_tokens=84,
            metrics=tuple(name for name in METRICS if name != "reward"),
        ),
        trackers=(),
    )
    run_recipe(recipe)
    scores: dict[str, Any] = json.loads((recipe.folder / "results.json").read_text())["scores"]
    return scores


def table(scores: dict[str, list[dict[str, Any]]]) -> str:
    """Return the table of the scores of all seeds, by magnifier."""
    rows = [f"| magnifier | | {' | '.join(METRICS)} | accuracy of each seed |"]
    rows += ["|---" * (len(METRICS) + 3) + "|"]
    for magnifier, runs in scores.items():
        for label in runs[0]:
            ways = [[run[label]["scenes"][way] for run in runs] for way in ("greedy", "sampled")]
            means = [
                " / ".join(f"{np.mean([_value(e, name) for e in way]):.3f}" for way in ways)
                for name in METRICS
            ]
            pairs = zip(*ways, strict=True)
            seeds = [" / ".join(f"{_value(e, 'accuracy'):.3f}" for e in pair) for pair in pairs]
            rows.append(f"| {magnifier} | {label} | {' | '.join(means)} | {', '.join(seeds)} |")
    return "\n".join(rows)


def _value(evaluation: dict[str, Any], name: str) -> float:
    return float(evaluation["reward"] if name == "reward" else evaluation["metrics"][name])


def main(options: Options) -> None:
    torch.set_num_threads(1)
    scores: dict[str, list[dict[str, Any]]] = {name: [] for name in options.magnifiers}
    for seed in options.seeds:
        folder = options.out / f"seed-{seed}"
        model = folder / "model"
        if not model.exists():
            pretrain(folder / "unfinished", seed).rename(model)
        trained = warm_up(model, folder, seed)
        for magnifier in options.magnifiers:
            scores[magnifier].append(train(trained, folder, magnifier, options, seed))
    print(table(scores))


if __name__ == "__main__":
    main(tyro.cli(Options))
