"""Implements a new algorithm, OPO, and trains with it by the same trainer as GRPO.

    python examples/new_algorithm.py --steps 3

OPO is on-policy RL with the optimal reward baseline (Hao et al., arXiv:2505.23585). The baseline is
the mean reward of the group, weighted by the number of sampled tokens of each episode, which
minimizes the variance. Otherwise OPO is REINFORCE with one step on every batch. Without --model the
program trains a tiny model with random weights, to show that it runs. `visenv train` creates a
model that was trained on demonstrations, runs/<name>/warm-up/checkpoints/<step>/policy. The
algorithms of visenv are in `visenv.algos.policy_gradient`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.algorithm import Algorithm, Batch, Loss
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.registration import load
from visenv.types import Group


class OPO(Algorithm):
    """Implements REINFORCE with the length-weighted mean reward of the group as baseline."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return the reward of each episode minus the baseline of its group."""
        return [
            [np.asarray(episode.reward - baseline(group)) for episode in group] for group in groups
        ]

    @override
    def loss(self, batch: Batch) -> Loss:
        """Return ``-A log p(episode)``, with the sum of the log-probabilities of its tokens."""
        zero = batch.logprobs.new_zeros(())
        logprobs = torch.where(batch.mask, batch.logprobs * batch.advantages, zero)
        entropy = torch.where(batch.mask, batch.entropy, zero).sum() / max(batch.total_tokens, 1)
        return Loss(-logprobs.sum() / batch.total_episodes, {"entropy": float(entropy)})


def baseline(group: Group) -> float:
    """Return ``Σ tokens · r / Σ tokens`` over the episodes of a group."""
    tokens = [episode.num_sampled_tokens for episode in group]
    weighted = sum(count * each.reward for count, each in zip(tokens, group, strict=True))
    return weighted / max(sum(tokens), 1)


@dataclass(frozen=True)
class Args:
    """Train a small vision-language model to zoom, with OPO."""

    folder: Path = Path("runs/opo")
    """Folder for metrics, episodes and checkpoints."""
    model: Path | None = None
    """Initial checkpoint; by default a tiny model with random weights."""
    steps: int = 100
    """Number of training steps."""
    prompts_per_step: int = 4
    """Number of scenes in a step."""
    num_generations: int = 4
    """Number of episodes of each scene."""
    learning_rate: float = 3e-4
    """Learning rate of AdamW."""
    threads: int = 2
    """Number of CPU threads."""
    seed: int = 0
    """Seed of all random numbers."""
    resume: bool = False
    """Continue the run in the folder."""


def make_env() -> gym.Env[Any, str]:
    """Return an environment."""
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def main(args: Args) -> None:
    """Train, and print the command that shows the results."""
    model = args.model or args.folder / "model"
    if not model.exists():
        load("model", "tiny")(model, make_env, seed=args.seed)
    config = TrainerConfig(
        steps=args.steps,
        seed=args.seed,
        rollouts=RolloutConfig(
            prompts_per_step=args.prompts_per_step,
            num_generations=args.num_generations,
            max_tokens=32,
        ),
        optimization=OptimizationConfig(learning_rate=args.learning_rate),
    )
    policy = load("policy", "transformers")(model, threads=args.threads)
    trainer = Trainer(policy, OPO(), config, folder=args.folder, resume=args.resume)
    trainer.train(make_env)
    print(f"See it all: visenv view {args.folder}")


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
